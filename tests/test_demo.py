"""The demonstration's parts: what is asked, what is counted, and that it runs from end to end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from rich.console import Console

from demur import Claim, ClaimLabel, DemurError, Evaluation, ModelCallError, Usage, cli, demo
from demur.models.calls import Reply
from demur.text import count_tokens

PASSAGE = demo.Passage("m.f", "What is f?", "f returns 3.")


def test_every_topic_is_documented_in_this_python() -> None:
    passages = demo.choose_passages()
    assert [passage.title for passage in passages] == [topic.title for topic in demo.TOPICS]
    assert all(0 < count_tokens(one.text) <= demo.LONGEST_PASSAGE for one in passages)


def test_topics_that_are_missing_or_too_long_are_left_out() -> None:
    topics = [
        demo.Topic("os", "nothing_of_the_kind", "?"),
        demo.Topic("no_such_module", "x", "?"),
        demo.Topic("os", "walk", "too long"),
        demo.Topic("os", "removedirs", "?"),
    ]
    assert [passage.title for passage in demo.choose_passages(topics)] == ["os.removedirs"]


def test_the_prose_of_a_docstring_is_taken_without_its_code() -> None:
    text = "f(x)\n\nOne line\nand the next.\n\n>>> f(1)\n1\n\n    indented()\n\nThe last."
    assert demo.prose(text) == "One line\nand the next.\n\nThe last."
    assert demo.prose("") == ""


def test_without_docstrings_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.inspect, "getdoc", lambda _: None)
    with pytest.raises(DemurError, match="-OO"):
        demo.choose_passages()


def test_the_passage_is_shown_only_to_the_informed() -> None:
    def content(informed: bool) -> str:
        return "".join(str(message.content) for message in demo._prompt(PASSAGE, informed))

    assert PASSAGE.text in content(True)
    assert PASSAGE.text not in content(False)
    assert PASSAGE.question in content(False)


@pytest.mark.parametrize(
    ("text", "truncated", "answer"),
    [
        ("One thing. Two thi", True, "One thing."),
        ("One thing. Two things. ", False, "One thing. Two things."),
        ("One thi", True, "One thi"),
        ("", True, ""),
    ],
)
def test_a_sentence_cut_off_is_left_out(text: str, truncated: bool, answer: str) -> None:
    assert demo._complete(Reply(text, truncated=truncated)) == answer


def _round(*labels: ClaimLabel | None, passed: bool | None = True) -> demo.Round:
    claims = tuple(Claim(text="x", label=label, error=None if label else "why") for label in labels)
    evaluation = Evaluation(name="e", passed=passed, claims=claims)
    return demo.Round(PASSAGE, True, "answer", Usage(), evaluation)


def test_tally_counts_labels_and_verdicts() -> None:
    entailed, neutral = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL
    counts = demo.tally(
        [
            _round(entailed, entailed),
            _round(entailed, neutral, ClaimLabel.CONTRADICTION, passed=False),
            _round(None, passed=None),
        ]
    )
    assert counts == demo.Tally(
        answers=3,
        passed=1,
        undetermined=1,
        claims=6,
        entailed=3,
        contradicted=1,
        neutral=1,
    )
    line = demo.tally_line("name", counts)
    assert "3 of 6 claims entailed by the documentation (50%)" in line
    assert "1 of 3 answers passed, 1 undecided" in line


def test_no_claims_is_no_division_by_zero() -> None:
    assert "no claims in 0 answers" in demo.tally_line("name", demo.tally([]))


def _scripted(checks: list[str]) -> Iterator[AIMessage]:
    """Per answer: the answer, its triplets, their labels."""
    usage = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    for label in checks:
        for reply in ("It removes [b]directories[/b].", '("it", "removes", "directories")', label):
            yield AIMessage(reply, usage_metadata=usage)  # type: ignore[arg-type]


def test_it_runs_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TOPICS", demo.TOPICS[:1])
    monkeypatch.setattr(demo.choose_passages, "__defaults__", (demo.TOPICS,))
    model = GenericFakeChatModel(messages=_scripted(["1. Contradiction", "1. Entailment"]))
    to = io.StringIO()
    demo.play(Console(file=to, highlight=False), model)
    out = to.getvalue()
    assert "Answer from memory:  It removes [b]directories[/b]." in out
    assert out.index("1. Contradiction: ") < out.index("Answer with the documentation:")
    assert "From memory: 0 of 1 claims entailed" in out
    assert "With the documentation: 1 of 1 claims entailed" in out
    assert "\n   “" in out
    assert "In all: 6 calls, 30 + 18 tokens" in out


def test_a_model_that_fails_ends_it_with_the_reason() -> None:
    class Broken(FakeListChatModel):
        def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
            raise ValueError("out of order")

    with pytest.raises(ModelCallError, match="out of order"):
        demo.play(Console(file=io.StringIO()), Broken(responses=["x"]))


def test_the_interrupt_is_clean(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "play", interrupted)
    monkeypatch.setattr(cli, "resolve_model", lambda name: FakeListChatModel(responses=["x"]))
    assert cli.run(["demo"]) == 130
    err = capsys.readouterr().err
    assert "stopped" in err
    assert "Traceback" not in err


@pytest.mark.real
def test_real_model_answers_and_is_checked() -> None:
    """The format only: what the model says is its own affair."""
    from demur import LocalModelError, RefChecker, resolve_model

    try:
        model = resolve_model("local")
    except DemurError as error:
        if isinstance(error, LocalModelError):
            pytest.skip(f"no local model: {error}")
        raise
    played = list(demo.rounds(model, RefChecker(model), demo.choose_passages()[:1]))
    assert [one.informed for one in played] == [False, True]
    for one in played:
        assert one.answer
        assert one.answering.output_tokens > 0
        assert one.evaluation.error is None
        assert one.evaluation.claims
