"""The benchmark on CHALE: what is chosen, recorded, read again and printed."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage

from demur import DemurError, Evaluation
from demur.evaluators import NeighborStore, Pairs
from demur.evaluators.fewl.neighbors import KnownQuestion
from demur.similarity import resolve_similarity
from demur_research import chale
from demur_research.agreement import Agreement, share_of_yes
from demur_research.commands import options, referring, run
from demur_research.recorder import Line, read
from demur_research.references import Asked, Question, questions
from support.fakes import ScriptedModel, isolated


class Apart(Embeddings):
    """Questions that are not alike: each number in a direction of its own."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(int(text[-1]) == at) for at in range(10)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


COLOURS = ("red", "green", "blue", "grey")


def _write_data(folder: Path, questions: int = 4) -> None:
    (folder / "chale").mkdir()
    rows: list[dict[str, Any]] = [
        {
            "id": f"c{at}",
            "question": f"which colour has thing {at}",
            "short_answer": COLOURS[at % 4],
            "non_hallu": f"{COLOURS[at % 4]} . It is painted .",
            "half_hallu": f"{COLOURS[(at + 1) % 4]} . It is painted .",
            "hallu": f"{COLOURS[(at + 2) % 4]} . It was found .",
            "flags": {"markup_in_answers": False, "half_equals_hallu": False},
        }
        for at in range(questions)
    ]
    unusable = [
        {**rows[0], "id": name, "flags": {**rows[0]["flags"], name: True}}
        for name in ("markup_in_answers", "half_equals_hallu")
    ]
    text = "".join(json.dumps(row) + "\n" for row in [*rows, *unusable])
    (folder / "chale" / "chale.jsonl").write_text(text)


def _reply(question: str, pairs: bool) -> str:
    colour = COLOURS[int(question.rsplit(" ", 1)[1]) % 4]
    if pairs:
        wrong = [other for other in COLOURS if other != colour]
        return "\n".join(
            f"{at}. Wrong Answer: It is {one}.\n{at}. Non-Wrong Answer: {one} is no part of it."
            for at, one in enumerate(wrong, start=1)
        )
    return f"1. {colour} . It is painted .\n2. The thing is {colour}."


def _script(stage: str, messages: Sequence[BaseMessage]) -> str:
    return _reply(isolated("question", messages), stage == "pairs")


ASKED = Asked(n_answers=2, n_wrong=3)


def _recorded(question: Question, model: ScriptedModel) -> dict[tuple[str, str], Line]:
    """What the model says of a question, as a recording gives it."""
    return {
        (question.key, name): Line(
            item=question.key,
            content="",
            model="",
            configuration=name,
            result=json.loads(json.dumps(judge(question).result)),
        )
        for name, judge in ASKED.judges(model).items()
    }


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chale, "NeighborStore", partial(NeighborStore, embedding=Apart()))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """Whom the commands ask."""
    model = ScriptedModel(script=_script)
    monkeypatch.setattr(options, "resolve_model", lambda name: model)
    return model


def _chale(data: Path, recording: Path, *more: str) -> int:
    common = ["--data", str(data), "--recording", str(recording)]
    return run(["chale", *common, "--n-answers", "2", "--n-wrong", "3", *more])


def _error(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_rows_with_markup_or_two_equal_wrong_answers_are_left_out(tmp_path: Path) -> None:
    _write_data(tmp_path)
    found = questions(tmp_path)
    assert sorted(item.key for item in found) == ["c0", "c1", "c2", "c3"]
    assert questions(tmp_path) == found
    assert [item.key for item in questions(tmp_path, seed=3)] != [item.key for item in found]


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    _write_data(tmp_path)
    item = questions(tmp_path)[0]
    lines = _recorded(item, ScriptedModel(script=_script))

    asked = ASKED.known(item, lines)

    assert asked.question == item.question
    assert len(asked.answers) == 2
    assert asked.pairs is not None
    assert len(asked.pairs.usable) == 3
    with pytest.raises(DemurError, match="holds no 5 answers"):
        Asked().known(item, lines)
    lines[item.key, ASKED.answers_name].result["replies"] = [{"reply": " ", "truncated": False}]
    with pytest.raises(DemurError, match="cannot be read"):
        ASKED.known(item, lines)


def test_other_pairs_are_recorded_beside_the_same_answers(
    tmp_path: Path, asked: ScriptedModel
) -> None:
    _write_data(tmp_path)
    recording = tmp_path / "recording.jsonl"
    assert _chale(tmp_path, recording, "--record", "2") == 0
    assert sorted(asked.stages) == ["pairs"] * 2 + ["reference"] * 2
    assert _chale(tmp_path, recording, "--record", "2", "--pairs", "right") == 0
    assert asked.stages[4:] == ["pairs"] * 2
    said = [
        str(request[0].content)
        for stage, request in zip(asked.stages, asked.requests, strict=True)
        if stage == "pairs"
    ]
    assert all("3 wrong answers" in system for system in said)
    assert said[0] == said[1] != said[2] == said[3]


def _few_pairs(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Of the first question."""
    if stage == "agreement":
        return "\n".join(f"{at}. {'yes' if at % 2 else 'no'}" for at in range(1, 7))
    if stage == "pairs" and isolated("question", messages).endswith("0"):
        return "1. Wrong Answer: It is blue.\n1. Non-Wrong Answer: It is not."
    return _script(stage, messages)


def test_agreement_is_asked_for_apart_and_its_tables_want_it(
    tmp_path: Path,
    apart: None,
    asked: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _write_data(tmp_path)
    asked.script = _few_pairs
    recording = tmp_path / "recording.jsonl"
    assert _chale(tmp_path, recording, "--record", "4") == 0
    assert _chale(tmp_path, recording, "--record", "4", "--agreement") == 0
    assert asked.stages.count("agreement") == 2 * 3
    replies = {
        key: len(line.result["replies"])
        for (key, name), line in read(recording).items()
        if name == ASKED.agreement_name
    }
    assert replies == {"c0": 0, "c1": 2, "c2": 2, "c3": 2}

    tables = ["--similarity", "rouge", "--config", "fewl-agreement"]
    assert _chale(tmp_path, recording, *tables) == 64
    assert "fewl-agreement needs --agreement" in _error(capsys)
    with pytest.warns(UserWarning, match="too few usable pairs"):
        assert _chale(tmp_path, recording, *tables, "--agreement") == 0
    assert "| fewl-agreement |" in capsys.readouterr().out

    few = {name: referring.CONFIGURATIONS[name] for name in ("single", "fewl-agreement")}
    monkeypatch.setattr(referring, "CONFIGURATIONS", few)
    assert _chale(tmp_path, recording, "--similarity", "rouge") == 0
    printed = capsys.readouterr().out
    assert "| single |" in printed
    assert "| fewl-agreement |" not in printed


def test_questions_without_a_score_are_counted(
    tmp_path: Path, apart: None, asked: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    asked.script = _few_pairs
    recording = tmp_path / "recording.jsonl"
    assert _chale(tmp_path, recording, "--record", "4") == 0
    names = ["--config", "single", "--config", "single-best"]
    assert _chale(tmp_path, recording, "--similarity", "rouge", *names) == 0
    printed = capsys.readouterr().out
    assert "| single |" in printed
    assert "| single-best (1 undetermined) |" in printed


def test_each_order_misses_what_the_other_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    assert run(["orders", "--data", str(tmp_path)]) == 0
    first, *printed = capsys.readouterr().out.splitlines()
    assert first.startswith("4 questions")
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in printed if "|" in line}
    # "red . It is painted ." and "blue . It was found .": four words each, of which one is common.
    assert rows["| the right one, then a wrong one"][:2] == ["1.000", "0.625"]
    assert rows["| the right one's first half"][:2] == ["0.500", "1.000"]
    assert rows["| a wrong one"][:2] == ["0.250", "0.250"]


def test_a_table_needs_what_is_recorded(
    tmp_path: Path, asked: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "recording.jsonl"
    assert _chale(tmp_path, recording) == 64
    assert "chale.jsonl: No such file" in _error(capsys)
    _write_data(tmp_path)
    assert _chale(tmp_path, recording) == 64
    assert "cannot read" in _error(capsys)
    assert _chale(tmp_path, recording, "--record", "1") == 0
    assert _chale(tmp_path, recording, "--pairs", "right") == 2
    assert "has no question with 2 answers and 3 pairs, right" in _error(capsys)


def test_a_failing_model_is_no_recording(
    tmp_path: Path, asked: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)

    def broken(stage: str, messages: Sequence[BaseMessage]) -> str:
        raise ValueError("out of order")

    asked.script = broken
    assert _chale(tmp_path, tmp_path / "recording.jsonl", "--record", "1") == 2
    assert "out of order" in _error(capsys)
    assert read(tmp_path / "recording.jsonl") == {}


def test_the_floor_is_the_share_of_words_that_the_question_has() -> None:
    item = Question(
        "c",
        "Who wrote it?",
        "Ann",
        {"non_hallu": "Ann wrote it.", "hallu": "...", "half_hallu": "Nobody."},
    )
    assert chale.floor(item, "non_hallu") == pytest.approx(2 / 3)
    assert chale.floor(item, "half_hallu") == 0
    assert chale.floor(item, "hallu") == 0


def test_recording_goes_on_where_it_stopped_and_the_table_needs_no_model(
    tmp_path: Path,
    apart: None,
    asked: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _write_data(tmp_path)
    recording = tmp_path / "recording.jsonl"
    assert _chale(tmp_path, recording, "--record", "2") == 0
    assert _chale(tmp_path, recording, "--record", "4") == 0
    assert len(asked.stages) == 2 * 4

    monkeypatch.setattr(options, "resolve_model", None)
    packed = tmp_path / "recording.jsonl.gz"
    packed.write_bytes(gzip.compress(recording.read_bytes()))
    capsys.readouterr()
    names = ["single", "fewl", "fewl-ideal", "fewl-js-random-mean-one"]
    wanted = [word for name in names for word in ("--config", name)]
    assert _chale(tmp_path, packed, "--similarity", "rouge", *wanted) == 0
    printed = capsys.readouterr().out
    assert "expertise by pairs and by labels: " in printed
    assert "4 questions; 2.0 answers each, 2.0 of them distinct; 3.0 usable pairs each" in printed
    rows = {line.split(" | ")[0].strip("| "): line for line in printed.splitlines()}
    assert "| 100.0 [100.0, 100.0] | 0 | 100.0 [100.0, 100.0] | 0 |" in rows["single"]
    assert {*names, "the penalty alone"} <= set(rows)


def test_the_penalty_alone_prefers_what_is_unlike_other_answers() -> None:
    lazy, fresh, first = (
        Evaluation(name="fewl", details={"penalties": penalties})
        for penalties in ([0.5, 0.75], [0.25, 0.5], None)
    )
    assert chale.unlike_others(lazy) == -0.625
    assert chale.unlike_others(fresh) == -0.375
    assert chale.unlike_others(first) is None


def test_expertise_by_pairs_is_held_against_that_by_labels() -> None:
    near = {"ann": {"corrected", "right"}, "bob": {"wrong", "half", "false"}}
    similarity = resolve_similarity(lambda pairs: [float(b in near[a]) for a, b in pairs])
    labelled = {"non_hallu": "right", "half_hallu": "half", "hallu": "false"}
    item = Question("c", "Who?", "Ada", {**labelled})
    good, bad = Pairs(usable=(("wrong", "corrected"),)), Pairs(usable=(("corrected", "wrong"),))
    answers = ("ann", "bob")
    asked = [
        KnownQuestion("Who?", answers, pairs) for pairs in (good, good, good, bad, Pairs(), None)
    ]
    told = chale.weighing(asked, [item] * len(asked), similarity)
    assert "0.50 +- 0.98 (95 %, 4 questions)" in told
    alike = [KnownQuestion("Who?", ("ann", "ann"), good)] * 3
    assert "too few questions" in chale.weighing(alike, [item] * 3, similarity)


def test_pairs_whose_sides_are_alike_can_be_dropped(
    tmp_path: Path, apart: None, asked: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    recording = tmp_path / "recording.jsonl"
    assert _chale(tmp_path, recording, "--record", "4") == 0
    table = ["--similarity", "rouge", "--config", "fewl", "--drop-alike", "0.01"]
    with pytest.warns(UserWarning, match="too few usable pairs"):
        assert _chale(tmp_path, recording, *table) == 0
    assert "0.0 usable pairs each" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        ({"yes": math.log(0.6), "no": math.log(0.2), "maybe": -2.0}, 0.75),
        ({"Yes": math.log(0.3), " yes": math.log(0.3), "NO.": math.log(0.2)}, 0.75),
        ({"no": -0.1}, 0.0),
    ],
)
def test_the_share_of_yes(tokens: dict[str, float], share: float) -> None:
    assert share_of_yes(tokens) == pytest.approx(share)


def test_agreement_says_what_it_cannot_read() -> None:
    with pytest.raises(DemurError, match="neither yes nor no"):
        share_of_yes({"perhaps": -0.1})
    silent = Agreement(FakeListChatModel(responses=["yes"]))
    with pytest.raises(DemurError, match="log-probabilities"):
        silent([("a", "b")])
