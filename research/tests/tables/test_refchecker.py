"""Test RefChecker's human labels on made-up rows: ranked models, and checkers beside people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from benches import Small, made, row_of, values
from demur import ClaimLabel
from demur.evaluators.refchecker import summarize
from demur_research.commands import run
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.resampling import pearson, spearman
from demur_research.tables.refchecker import checking, correlation, ranking
from demur_research.tables.refchecker.responses import response
from support.fakes import ScriptedModel, isolated, scripted
from support.shared import SHARED, shared

LABELS = {"E": "Entailment", "N": "Neutral", "C": "Contradiction"}
SOURCES = {"zero_context": "nq", "noisy_context": "msmarco", "accurate_context": "dolly"}


def row(model: str, question: int, labels: str, setting: str = "zero_context") -> LabelledRow:
    """Return a response with one claim for each label; its length depends on its claims."""
    source = SOURCES[setting]
    told: dict[str, Any] = {
        "setting": setting,
        "source": source,
        "model": model,
        "claims": [["mill", "has number", str(at)] for at, _ in enumerate(labels)],
        "labels": [LABELS[label] for label in labels],
    }
    answer = Answer("It is so. " * len(labels), any(of != "E" for of in labels) or None)
    group = f"{source}-{question}"
    return LabelledRow(f"{group} {model}", None, (answer,), group=group, metadata=told)


def ranked(path: Path, rows: Sequence[LabelledRow]) -> Any:
    return made(ranking.RANKING, path, scripted(""), {"refchecker": rows})


def test_models_are_ranked_by_macro_averages_and_abstentions_stand_apart(tmp_path: Path) -> None:
    rows = [
        *(row("good", 1, "E"), row("good", 2, "EEEC"), row("good", 3, "")),
        *(row("poor", 1, "NNNNNNNN"), row("poor", 2, "E"), row("poor", 3, "C")),
    ]
    found = ranked(tmp_path / "r", rows)
    good, poor = (values(found, f"zero_context: {name}") for name in ("good", "poor"))
    # The rate is not 4 of 5: a response with many claims weighs no more than one with few.
    assert good == pytest.approx([1, 87.5, 0, 12.5, 100 / 3, None], nan_ok=False)
    assert poor == pytest.approx([2, 100 / 3, 100 / 3, 100 / 3, 0, None])
    assert row_of(found, "zero_context: good").items == 3
    assert values(found, "all settings: good")[:3] == good[:3]
    entailment = row_of(found, "zero_context: good").figures[1]
    assert entailment is not None
    assert (entailment.low, entailment.high) == (75, 100)


def test_settings_are_compared_and_what_knows_nothing_stands_beside_them(tmp_path: Path) -> None:
    rows = [
        *(row("a", 1, "EE"), row("b", 1, "EC"), row("c", 1, "CCC")),
        *(row("a", 2, "C", "noisy_context"), row("b", 2, "EC", "noisy_context")),
        row("c", 2, "EEE", "noisy_context"),
    ]
    found = ranked(tmp_path / "r", rows)
    assert values(found, "zero_context against noisy_context")[-1] == pytest.approx(-1)
    for what in ("length of the responses", "number of claims"):
        floor = row_of(found, f"noisy_context: {what} against the labels")
        assert floor.floor
        assert floor.figures[-1] is not None
        assert floor.figures[-1].value == pytest.approx(1)
    assert not [one for one in found.rows if "accurate" in one.name]


def test_a_model_that_always_abstains_has_no_rank(tmp_path: Path) -> None:
    found = ranked(tmp_path / "r", [row("a", 1, "E"), row("mute", 1, "")])
    assert found.rows[1].name == "zero_context: mute"
    assert values(found, "zero_context: mute") == [None, None, None, None, 100, None]


RESPONSES = st.lists(st.text("ENC", max_size=5), min_size=1, max_size=8)


@given(RESPONSES)
def test_the_averages_are_those_of_summarize(labels: list[str]) -> None:
    responses = [response(row("a", at, of)) for at, of in enumerate(labels)]
    summary = summarize(one.evaluation for one in responses)
    shares = [of.count("E") / len(of) for of in labels if of]
    expected = sum(shares) / len(shares) if shares else None
    assert summary.entailment == pytest.approx(expected)
    assert summary.nothing_to_check == labels.count("")
    standing = ranking.Standing(responses, ["a"], 0)
    (mean,), _ = standing.means(ranking.share_of("entailment")) if shares else ([None], None)
    assert mean == pytest.approx(summary.entailment)
    for of, one in zip(labels, responses, strict=True):
        assert one.evaluation.passed is (None if not of else set(of) == {"E"})


# -- checkers beside people ------------------------------------------------------------------------

JUDGED = [row("a", 1, "EEN"), row("b", 1, "ENN"), row("a", 2, "C"), row("b", 3, "")]


def checked(path: Path, model: Any, **options: str) -> Any:
    return made(checking.CHECKER, path, model, {"refchecker": JUDGED}, options=options)


def test_without_references_there_are_people_and_floors_and_it_is_said(tmp_path: Path) -> None:
    found = checked(tmp_path / "r", scripted(""))
    # Two models made the same three claims, and people labelled two of them alike.
    people = values(found, "people, of the same claim again")
    assert people == pytest.approx([200 / 3, 200 / 3, 200 / 3])
    assert row_of(found, "people, of the same claim again").items == 3
    assert values(found, "always Entailment") == pytest.approx([300 / 7, 60, 0])
    assert values(found, "always Neutral")[0] == pytest.approx(300 / 7)
    assert values(found, "always Contradiction")[0] == pytest.approx(100 / 7)
    assert any("No checker was asked" in note for note in found.notes)
    assert not [one for one in found.rows if one.name in ("joint", "per_claim", "logprobs")]


def referenced(folder: Path) -> Path:
    """Write references as the publisher's script does, for the first question only."""
    (folder / "zero_context").mkdir(parents=True)
    told = [{"id": 1, "question": "Which number?", "context": ["The mill has number 0."]}]
    (folder / "zero_context" / "nq.json").write_text(json.dumps(told))
    return folder


def knows(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Label by the reference, and give no label for number 2."""
    if stage == "joint":
        lines = isolated("claims", messages).splitlines()
        return "\n".join(f"{at}. {_label(line)}" for at, line in enumerate(lines, 1))
    assert "has number" in isolated("claim", messages)
    return _label(isolated("claim", messages))


def _label(claim: str) -> str:
    return "Entailment" if claim.endswith("0") else "" if claim.endswith("2") else "Neutral"


def test_with_references_checkers_stand_beside_people(tmp_path: Path) -> None:
    path, folder = tmp_path / "r.jsonl", referenced(tmp_path / "references")
    options = {"references": str(folder), "checkers": "joint,per_claim"}
    found = checked(path, ScriptedModel(script=knows), **options)
    # Number 0 is entailed for both people, number 1 for one of them, and number 2 has no label.
    for name in ("joint", "per_claim"):
        assert values(found, name) == pytest.approx([75, 80, 200 / 3])
        assert (row_of(found, name).items, row_of(found, name).undetermined) == (4, 2)
    spent = row_of(found, "per_claim").spent
    assert spent is not None
    assert spent.calls == pytest.approx(4 / 3)  # Number 2 is asked about once more.
    assert values(found, "always Entailment")[0] == 50
    # By words, only the first claim is completely in the reference.
    assert values(found, "every word in the reference")[0] == pytest.approx(500 / 6)
    assert "1 references are of 2 responses with claims." in found.notes
    assert checked(path, None, **options) == found


def test_a_folder_without_references_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"references: expected one of .*nq\.json"):
        checked(tmp_path / "r", scripted(""), references=str(tmp_path))


# -- a judge's ranking beside the people's ---------------------------------------------------------

# The responses repeat "It is so." and state as many things as they have labels.
RANKED = [
    *(row("good", 1, "EE"), row("good", 2, "EEEE")),
    *(row("fair", 1, "EN"), row("fair", 2, "EEEN")),
    *(row("poor", 1, "CCN"), row("poor", 2, "EC")),
    row("mute", 1, ""),
]


SUPPORT: dict[str, float | str] = {"0": 0.9, "1": 0.5, "2": 0.05, "3": 0.05}
"""How far the small judge supports a claim, by its number."""


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> Small:
    judge = Small(lambda _, claim: SUPPORT[claim.split()[-1]], ClaimLabel.CONTRADICTION)
    return judge.stands_in(monkeypatch)


def correlated(path: Path, rows: Sequence[LabelledRow] = RANKED, **options: str) -> Any:
    table = correlation.CORRELATION
    return made(table, path, None, {"refchecker": rows}, options=options)


def test_the_judge_s_rates_and_order_stand_beside_the_people_s(path: Path, judging: Small) -> None:
    found = correlated(path)
    # The judge supports the claims 0 and 1, whoever makes them. So it rates "good" at 100 and 50 %.
    assert values(found, "zero_context: good")[:6] == pytest.approx([100, 75, 0, 25, 0, 50])
    assert values(found, "zero_context: poor")[:6] == pytest.approx(
        [25, 250 / 3, 250 / 3 - 25, 50 / 3, 100, 50]
    )
    assert [one.name for one in found.rows[:3]] == [
        f"zero_context: {name}" for name in ("good", "fair", "poor")
    ]
    people, judge = [100, 62.5, 25], [75, 75, 250 / 3]
    both = values(found, "all settings: Entailment, small and people")[-2:]
    assert both == pytest.approx([pearson(people, judge), spearman(people, judge)])
    # People call 0, 1 and 1 of the responses hallucinated, and the judge calls each half so.
    assert values(found, "all settings: hallucinated, small and people")[-2:] == [None, None]
    floor = row_of(found, "zero_context: number of claims and people's Entailment")
    assert floor.floor
    assert values(found, floor.name)[-2:] == pytest.approx(
        [pearson(people, [3, 3, 2.5]), 0.866], 1e-3
    )
    assert not [one for one in found.rows if "mute" in one.name]


def test_claims_are_held_against_the_other_models_answers(path: Path, judging: Small) -> None:
    texts = {"good": "Claire says so.", "fair": "Robert says so.", "mute": ""}
    rows = [
        replace(one, answers=(Answer(texts[str(one.metadata["model"])], None),))
        for one in (row("good", 1, "E"), row("fair", 1, "N"), row("mute", 1, ""))
    ]
    found = correlated(path, rows)
    assert {reference for reference, _ in judging.asked} == {*texts.values()} - {""}
    assert any("the other models' answers" in note for note in found.notes)
    alone = [row("good", 1, "E")]
    with pytest.raises(ValueError, match="no response has references"):
        correlated(path, alone)


def test_given_references_take_their_place(path: Path, tmp_path: Path, judging: Small) -> None:
    found = correlated(path, references=str(referenced(tmp_path / "references")))
    assert {reference for reference, _ in judging.asked} == {"The mill has number 0."}
    # Only the first question has references.
    assert values(found, "all settings: good")[:2] == [100, 100]
    assert row_of(found, "all settings: good").items == 1
    assert "The references are the publisher's." in found.notes


@pytest.mark.usefixtures("judging")
def test_a_response_with_a_claim_without_a_label_is_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUPPORT, "3", "unreadable")
    found = correlated(path)
    assert row_of(found, "all settings: good").items == 1
    assert "2 responses are left out, of which a claim has no label." in found.notes


# -- the published labels --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_published_labels_rank_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    shared("refchecker", "refchecker.jsonl")
    arguments = ["--data", str(SHARED / "refchecker"), "--format", "json"]
    assert run(["refchecker-ranking", *arguments]) == 0
    found = {one["row"]: one for one in json.loads(capsys.readouterr().out)["rows"]}
    first = [name for name in found if name.startswith("all settings: ")][0:3]
    assert first == [f"all settings: {name}" for name in ("gpt4", "chatgpt", "claude2")]
    assert found["all settings: gpt4"]["items"] == 188
    rank, entailment, *_ = found["all settings: gpt4"]["figures"]
    assert (rank["value"], round(entailment["value"], 1)) == (1, 84.9)
    assert found["zero_context: gpt4"]["figures"][4]["value"] == 0
