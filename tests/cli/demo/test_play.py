"""Test the demonstration from end to end with a scripted model."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from rich.console import Console

from demur import DemurError, ModelCallError, cli
from demur.cli.demo import play as played
from demur.cli.demo.corpus import passages
from demur.cli.demo.play import QUESTIONS, play
from demur.guard import Trace

EMBEDDINGS = DeterministicFakeEmbedding(size=8)
TRIPLET = '("it", "removes", "all directories")'
THIRD = '("it", "removes", "no directories")'
OTHER = '("it", "removes", "directories")'


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a small corpus and temporary folders."""
    pytest.importorskip("langchain_chroma")
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(played, "passages", lambda: passages(["copy", "heapq"]))


def _replies(*texts: str) -> GenericFakeChatModel:
    usage = UsageMetadata(input_tokens=5, output_tokens=3, total_tokens=8)
    messages: Iterator[AIMessage] = iter([AIMessage(text, usage_metadata=usage) for text in texts])
    return GenericFakeChatModel(messages=messages)


def _shown(model: Any, traces: Path, questions: tuple[str, ...], *, terminal: bool = False) -> str:
    to = io.StringIO()
    console = Console(file=to, highlight=False, force_terminal=terminal, width=200)
    play(console, model, traces, EMBEDDINGS, questions)
    return to.getvalue()


def test_an_answer_that_fails_is_given_anew_and_all_of_it_is_shown(tmp_path: Path) -> None:
    model = _replies(
        *("It removes [b]all directories[/b].", TRIPLET, "1. Contradiction"),
        *("It removes [b]directories[/b].", OTHER, "1. Entailment"),
    )
    traces = tmp_path / "deep" / "traces.json"
    out = _shown(model, traces, ("What does it remove?",))
    parts = (
        "Question 1 of 1:  What does it remove?",
        "Answer 1:  It removes [b]all directories[/b].",
        "1. Contradiction: it removes all directories",
        "FAILED",
        "Why:  The passages contradict claims. The guard had the answer corrected; a model "
        "answered from the references, told what was wrong.",
        "Answer 2:  It removes [b]directories[/b].",
        "1. Entailment: it removes directories",
        "PASSED",
        "The guard:  recovered: attempt 2 passed",
        "Final answer:  It removes [b]directories[/b].",
        "6 calls, 30 + 18 tokens",
        "1 question: 1 recovered; recoveries: 1 repair",
        "In all: 6 calls, 30 + 18 tokens",
        f"Traces: {traces}",
        f"Report: {traces.with_suffix('.html')}  open it in a browser",
    )
    flat = " ".join(out.split())
    places = [flat.index(" ".join(part.split())) for part in parts]
    assert places == sorted(places)

    (record,) = json.loads(traces.read_text())
    assert record["output"] == "It removes [b]directories[/b]."
    trace = Trace.model_validate(record["trace"])
    assert trace.outcome == "recovered"
    assert [attempt.verdict for attempt in trace.attempts] == ["failed", "passed"]
    assert len(trace.attempts[0].contexts) == played.RETRIEVED
    page = traces.with_suffix(".html").read_text(encoding="utf-8")
    assert "demur demo" in page
    assert "It removes [b]all directories[/b]." in page


def test_a_refusal_is_shown_as_one(tmp_path: Path) -> None:
    model = _replies(
        *("It removes all directories.", TRIPLET, "1. Neutral"),
        # The documents found later are checked separately: one more label for each claim.
        *("It removes directories.", OTHER, "1. Neutral", "1. Neutral"),
        *("It removes no directories.", THIRD, *3 * ["1. Neutral"]),
    )
    out = _shown(model, tmp_path / "traces.json", ("What does it remove?",))
    assert "The guard:  abstained: no answer passed in 3 attempts" in out
    assert "Final answer:  It removes" not in out
    assert "1 question: 1 abstained; recoveries: 2 retrieve" in out


def test_every_question_has_a_trace_even_if_a_later_one_fails(tmp_path: Path) -> None:
    class Broken(GenericFakeChatModel):
        def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> Any:
            if "second" in str(messages[-1].content):
                raise ValueError("out of order")
            return super()._generate(messages, *rest, **options)

    replies = ("It removes directories.", TRIPLET, "1. Entailment")
    model = Broken(messages=iter([AIMessage(text) for text in replies]))
    traces = tmp_path / "traces.json"
    with pytest.raises(ModelCallError, match="The model gave no answer: ValueError: out of order"):
        _shown(model, traces, ("The first?", "The second?"), terminal=True)
    (record,) = json.loads(traces.read_text())
    assert record["trace"]["outcome"] == "passed"


def test_a_place_that_cannot_be_written_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(DemurError, match=r"cannot be written to .*demur demo --traces FILE"):
        _shown(FakeListChatModel(responses=[]), tmp_path, ("Anything?",))
    (tmp_path / "traces.html").mkdir()
    model = _replies("It removes directories.", OTHER, "1. Entailment")
    with pytest.raises(DemurError, match=r"the report cannot be written to .*traces\.html"):
        _shown(model, tmp_path / "traces.json", ("What does it remove?",))


def test_the_traces_have_a_place_of_their_own_if_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_state_dir", lambda name: str(tmp_path / name))
    to = io.StringIO()
    play(Console(file=to, width=200), FakeListChatModel(responses=["No claims"]), None, EMBEDDINGS)
    (path,) = (tmp_path / "demur").glob("demo-*.json")
    assert f"Traces: {path}" in to.getvalue()
    assert len(json.loads(path.read_text())) == len(QUESTIONS)


def test_the_command_names_the_file_and_the_interrupt_is_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    given: list[Any] = []

    def interrupted(console: Console, *arguments: Any) -> None:
        given.extend(arguments)
        raise KeyboardInterrupt

    model = FakeListChatModel(responses=["x"])
    monkeypatch.setattr(played, "play", interrupted)
    monkeypatch.setattr(sys.modules["demur.cli.demo"], "resolve_model", lambda name: model)
    assert cli.run(["demo", "--traces", str(tmp_path / "mine.json")]) == 130
    assert given == [model, tmp_path / "mine.json"]
    err = capsys.readouterr().err
    assert "stopped" in err
    assert "Traceback" not in err
