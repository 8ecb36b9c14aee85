"""Whether exemplars help: the pool, the arms, the recording and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from demur import ExampleStore
from demur.errors import DemurError
from demur.evaluators import NeighborStore
from demur_research import exemplars
from demur_research.commands import options, run
from demur_research.exemplars import Scored
from demur_research.recorder import Line, Lines, open_recording, read
from demur_research.references import SIDES, Asked, Question
from demur_research.runner import run as run_all
from support.fakes import ScriptedModel, isolated

pytest.importorskip("chromadb")


class Apart(Embeddings):
    """Questions in a row: the nearer two numbers, the more alike."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, float(text.rsplit(" ", 1)[1]) / 10] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def _item(at: int) -> Question:
    texts = {side: f"{side} of {at}" for side in SIDES}
    return Question(f"c{at}", f"what is thing {at}", f"of {at}", texts)


def _scored(at: int, fewl: Sequence[float], baseline: Sequence[float]) -> Scored:
    return Scored(_item(at), {"fewl": tuple(fewl), "baseline": tuple(baseline)})


RIGHT, HALF, WRONG = (3, 2, 1), (1, 3, 2), (1, 2, 3)
QUESTIONS = [
    _scored(0, RIGHT, WRONG),
    _scored(1, RIGHT, RIGHT),
    _scored(2, HALF, RIGHT),
    _scored(3, RIGHT, HALF),
    _scored(4, WRONG, WRONG),
]


def _script(stage: str, messages: Sequence[BaseMessage]) -> str:
    """An answerer that repeats its first example, and a judge that knows what is right."""
    if stage == "comparison":
        sides = [isolated(name, messages).startswith("non_hallu") for name in ("a", "b")]
        return "C" if sides[0] == sides[1] else "A" if sides[0] else "B"
    told = [message for message in messages if isinstance(message, AIMessage)]
    return str(told[0].content) if told else f"nothing {messages[-1].content}"


def _answerer() -> ScriptedModel:
    return ScriptedModel(script=_script)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exemplars, "ExampleStore", partial(ExampleStore, embedding=Apart()))


def test_the_pool_is_what_the_two_scorers_choose_otherwise() -> None:
    pool = exemplars.disputed(QUESTIONS)
    assert [one.item.key for one in pool] == ["c0", "c2", "c3"]
    assert [one.choice("fewl") for one in pool] == ["non_hallu", "half_hallu", "non_hallu"]
    assert [one.choice("baseline") for one in pool] == ["hallu", "non_hallu", "half_hallu"]
    assert _scored(0, (1, 1, 1), RIGHT).choice("fewl") == "non_hallu"


def test_each_arm_has_its_scorers_choices_for_examples_and_never_the_question(
    apart: None, tmp_path: Path
) -> None:
    model = _answerer()
    tests = exemplars.tested(QUESTIONS, 1)
    with open_recording(tmp_path / "out.jsonl", tests, "one") as kept:
        pool = exemplars.disputed(QUESTIONS)
        run_all(kept, tests, exemplars.answering(pool, "fewl", model))
        run_all(kept, tests, exemplars.judging("fewl", model, kept.lines))
        found = {name: line.result for (_, name), line in kept.lines.items()}
    shown = [
        [
            (asked.content, told.content)
            for asked, told in pairwise(turns)
            if isinstance(asked, HumanMessage) and isinstance(told, AIMessage)
        ]
        for stage, turns in zip(model.stages, model.requests, strict=True)
        if stage != "comparison"
    ]
    two, three = "what is thing 2", "what is thing 3"
    assert shown == [
        [(two, "half_hallu of 2"), (three, "non_hallu of 3")],
        [(two, "non_hallu of 2"), (three, "half_hallu of 3")],
        [],
    ]
    answers = {name: one["answer"] for name, one in found.items() if "answer" in one}
    assert answers == {
        "fewl, fewl": "half_hallu of 2",
        "fewl, baseline": "non_hallu of 2",
        "none": "nothing what is thing 0",
    }
    verdicts = {name: one["verdict"] for name, one in found.items() if "verdict" in one}
    assert {name: (one["winner"], one["reason"]) for name, one in verdicts.items()} == {
        "fewl, fewl : baseline": ("second", "consistent"),
        "fewl, fewl : none": (None, "unsure"),
        "fewl, baseline : none": ("first", "consistent"),
        "right : wrong": ("first", "consistent"),
    }


@pytest.mark.parametrize(
    ("short", "answer", "found"),
    [
        ("Mary Anning", "It was mary anning, of Lyme.", True),
        ("Mary Anning", "It was Anning, Mary.", False),
        ("art", "A party.", False),
        ("March 30, 2018", "On March 30 2018.", True),
    ],
)
def test_an_answer_holds_the_short_one_word_by_word(short: str, answer: str, found: bool) -> None:
    item = Question("c", "who?", short, dict.fromkeys(SIDES, ""))
    assert exemplars.finds(item, answer) is found


def test_recording_goes_on_where_it_stopped_and_the_tables_need_no_model(
    apart: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chale").mkdir()
    (tmp_path / "chale" / "chale.jsonl").write_text("")
    references, recording = tmp_path / "references.jsonl", tmp_path / "out.jsonl"
    references.write_text("")
    model = _answerer()
    monkeypatch.setattr(exemplars, "scored", lambda known, lines, configuration: QUESTIONS)
    monkeypatch.setattr(options, "resolve_model", lambda name: model)
    common = ["exemplars", "--data", str(tmp_path), "--references", str(references)]
    common += ["--recording", str(recording)]
    assert run([*common, "--record", "1"]) == 0
    assert run([*common, "--record", "4"]) == 0
    lines = read(recording)
    keys = [key for key, name in lines if name == "none"]
    assert keys == ["c0", "c2", "c3", "c1"]  # the pool comes first
    verdicts = [line.result["verdict"] for line in lines.values() if "verdict" in line.result]
    assert len(verdicts) == 4 * 4
    same = sum(verdict["reason"] == "same" for verdict in verdicts)
    assert len(model.stages) == 4 * 11 - 2 * same

    monkeypatch.setattr(options, "resolve_model", None)
    capsys.readouterr()
    assert run(common) == 0
    printed = capsys.readouterr().out
    assert "5 questions scored, 3 disputed" in printed
    assert "by fewl 2 times, by baseline 1 times" in printed
    assert "4 test questions" in printed
    assert "| right : wrong | 4 | 0 | 100.0 [51.0, 100.0] | 0 | 0 | 0 | 0 |" in printed
    hits = sum(
        lines[key, "fewl-mean-one, fewl"].result["answer"].endswith(f"of {key[1:]}") for key in keys
    )
    assert f"| fewl | {25 * hits:.1f}" in printed
    assert run([*common, "--config", "fewl"]) == 2
    assert "holds nothing of --config fewl" in capsys.readouterr().err

    # What is the same with another configuration is not asked for again.
    monkeypatch.setattr(options, "resolve_model", lambda name: model)
    before = model.stages.count("chain"), model.stages.count("comparison")
    assert run([*common, "--config", "fewl", "--record", "4"]) == 0
    assert model.stages.count("chain") == before[0] + 4 * 2
    assert model.stages.count("comparison") <= before[1] + 4 * 3 * 2


def test_an_answer_without_a_score_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    item = _item(0)
    reply = {"replies": [{"reply": "1. a\n2. b", "truncated": False}]}
    lines: Lines = {
        (item.key, name): Line(
            item=item.key, content="", model="", configuration=name, result=reply
        )
        for name in (Asked().answers_name, Asked().pairs_name)
    }
    nothing = {side: [None] for side in SIDES}
    monkeypatch.setattr(exemplars, "NeighborStore", partial(NeighborStore, embedding=Apart()))
    monkeypatch.setattr(exemplars, "scores", lambda evaluator, items: nothing)
    with pytest.raises(DemurError, match="an answer to c0 has no score"):
        exemplars.scored([item], lines, "fewl")
