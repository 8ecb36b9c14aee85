"""Test streams with `Cite` and `Strip` on hostile answers in arbitrary chunks.

A failing sentence contains a letter that is nowhere else: no client may see it. The final text of
a client must be the text that `invoke` returns.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import Runnable, RunnableGenerator
from langchain_core.runnables.utils import AddableDict

from demur import (
    Abstain,
    AnswerRejected,
    Block,
    CitationSupport,
    Cite,
    Claim,
    ClaimLabel,
    Evaluation,
    Evidence,
    Guard,
    Regenerate,
    Sample,
    Span,
    Strip,
)
from demur.evaluators import Evaluator, pieces
from demur.guard.edits import FORMS
from demur.runtime import Steps
from support.held import LOUVRE
from support.streams import Client, text_in

SECRET = "ⰰ"
"""The letter that marks failing sentences."""
GOOD = (
    *("The Louvre opened in 1793.", "On show are 35000 works.", "It opened in 1793!", "Fine."),
    *("- since 1793", "1. works: 35000", "# Art of 1793", "The facts are:", "| a |\n|-|\n| 1793 |"),
    *("It opened in 1793 [2].", "It opened in 1793. [[1]](https://evil.example)", "Source: 2"),
    *(
        "`x[7]` is of 1793.",
        "```\nyear = 1793\n```",
        "[^1]: 1793",
        "She saw 35000 works.",
        "1793 is",
    ),
    *(
        "[x](javascript:alert(1)) of 1793.",
        "It is of 1793 【7】 and [【1】7] in all.",
        "However, 1793.",
    ),
)
BAD = (
    f"In 1850 it {SECRET} burnt.",
    f"- fire {SECRET} in 1851",
    f"It {SECRET} fell in 1852 [1].",
    f"2. {SECRET} fire: 1853",
    f"# {SECRET} in 1854",
    f"| {SECRET} |\n|-|\n| 1855 |",
    f"```\n{SECRET} = 1856\n```",
    f"In 1857 {SECRET} these burnt:",
    f'"{SECRET} of 1858."',
    f"Source: {SECRET} of 1859",
)
BETWEEN = (" ", "  ", "\n\n", "\n\n- ")


class Judge(Evaluator):
    """Reject sentences with the letter, both by themselves and among others.

    The evaluation quotes the rejected sentences in every field that holds text.
    """

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        claims = tuple(_claim(sample.answer, *span) for span in _spans(sample.answer))
        if not claims:
            return Evaluation(name="Judge", label="Abstain", explanation=sample.answer)
        passed = all(claim.label is ClaimLabel.ENTAILMENT for claim in claims)
        said = f"of {sample.answer}"
        return Evaluation(
            name="Judge", score=float(passed), passed=passed, explanation=said, claims=claims
        )


def _spans(answer: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences, and of the lines of tables and of code."""
    for piece in pieces(answer):
        if piece.kind not in ("table", "code"):
            yield piece.begin, piece.end
            continue
        for line in re.finditer(r"[^\n]+", answer[piece.start : piece.end]):
            yield piece.start + line.start(), piece.start + line.end()


def _claim(answer: str, start: int, end: int) -> Claim:
    text, span = answer[start:end], Span(start=start, end=end)
    if SECRET in text:
        return Claim(text=text, span=span, label=ClaimLabel.CONTRADICTION)
    at = sum(map(str.isalpha, text)) % 2  # The choice does not depend on a list marker.
    quote = LOUVRE[at].page_content
    whole = Span(start=0, end=len(quote))
    evidence = Evidence(context=at, span=whole, text=quote, label=ClaimLabel.ENTAILMENT)
    return Claim(text=text, span=span, label=ClaimLabel.ENTAILMENT, evidence=(evidence,))


def _documents(output: Any) -> list[Document]:
    return list(LOUVRE)


def _told(pieces: list[str], kind: str) -> Runnable[Any, Any]:
    def chunks() -> Iterator[Any]:
        if kind == "mapping":
            yield AddableDict(context=list(LOUVRE))
        for piece in pieces:
            if kind == "message":
                yield AIMessageChunk(piece, id="m-1", response_metadata={"said": piece})
            else:
                yield AddableDict(answer=piece) if kind == "mapping" else piece

    def tell(given: Iterator[Any]) -> Iterator[Any]:
        list(given)
        yield from chunks()

    async def atell(given: AsyncIterator[Any]) -> AsyncIterator[Any]:
        [_ async for _ in given]
        for chunk in chunks():
            yield chunk

    return RunnableGenerator(tell, atell)


class Watching(Client):
    """Read a stream as the contract says, and keep everything that was ever received."""

    def __init__(self) -> None:
        super().__init__()
        self.things: list[Any] = []
        self.rejected = False

    def take(self, chunk: Any) -> None:
        self.things.append(chunk)
        super().take(chunk)

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.things.append((name, data))
        super().on_custom_event(name, data)

    @property
    def all(self) -> str:
        return f"{self.things!r} {[_dumped(one) for one in self.things]}"


def _dumped(thing: Any) -> str:
    return json.dumps(thing, default=repr, ensure_ascii=False)


def _stream(guarded: Runnable[Any, Any], client: Watching) -> None:
    client.read(guarded, "When?")


async def _astream(guarded: Runnable[Any, Any], client: Watching) -> None:
    await client.aread(guarded, "When?")


async def _events(guarded: Runnable[Any, Any], client: Watching) -> None:
    own = None
    async for event in guarded.astream_events("When?", version="v2"):
        own = own or event["run_id"]
        if event["event"] == "on_custom_event":
            client.on_custom_event(event["name"], event["data"])
        elif event["event"] == "on_chain_stream" and event["run_id"] == own:
            client.take(event["data"]["chunk"])
        else:
            client.things.append(event)


LISTENERS: dict[str, Callable[[Runnable[Any, Any], Watching], Any]] = {
    "stream": _stream,
    "astream": _astream,
    "events": _events,
}
POLICIES: dict[str, Any] = {
    "strip": "strip",
    "strip, else block": {"any": Strip(), "end": Block()},
    "block": Block(),
    "abstain": Abstain(),
    "again, or strip": {"neutral": Strip(), "contradiction": Regenerate()},
    "citations, and strip": {"citation": Cite(), "any": Strip()},
    "none": None,
}


def _guard(answer: list[str], kind: str, policy: str, form: Any, supports: bool) -> Guard[Any, Any]:
    judges: list[Any] = [Judge()]
    if supports:
        judges.append(CitationSupport(Judge()))
    return Guard(
        _told(answer, kind),
        judges,
        contexts=_documents,
        streaming="sentence",
        on_fail=POLICIES[policy],
        on_pass=None if form is None else Cite(form),
    )


def _heard(guarded: Guard[Any, Any], how: str) -> Watching:
    client = Watching()
    try:
        heard = LISTENERS[how](guarded, client)
        if heard is not None:
            asyncio.run(heard)
    except AnswerRejected as error:
        client.rejected = True
        client.things.append((str(error), repr(error.__cause__), repr(error.__context__)))
    return client


def _invoked(guarded: Guard[Any, Any]) -> str | None:
    try:
        return text_in(guarded.invoke("When?"))
    except AnswerRejected:
        return None


@st.composite
def _answers(draw: Any) -> list[str]:
    said = draw(st.lists(st.sampled_from((*GOOD, *GOOD, *BAD)), min_size=1, max_size=7))
    text = ""
    for one in said:
        block = one.startswith(("|", "```", "-", "#", "1.", "2."))
        text += f"\n\n{one}\n\n" if block else one + draw(st.sampled_from(BETWEEN))
    cuts = draw(st.lists(st.integers(0, len(text)), max_size=12))
    at = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in pairwise(at)]


_KINDS = st.sampled_from(("string", "message", "mapping"))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    _answers(),
    _KINDS,
    st.sampled_from(tuple(POLICIES)),
    st.sampled_from((None, *FORMS)),
    st.booleans(),
    st.sampled_from(tuple(LISTENERS)),
)
@example(
    [f"Fine. In 1850 {SECRET} fell:\n- since 1793\n"], "string", "strip", "numbers", False, "stream"
)
@example(
    ["- since 1793\n", f"  - {SECRET} in 1850\n- works: 35000"],
    "message",
    "strip",
    "links",
    False,
    "events",
)
def test_no_sign_of_what_fails_is_seen_and_the_end_is_what_invoke_returns(
    answer: list[str], kind: str, policy: str, form: Any, supports: bool, how: str
) -> None:
    if form == "blocks" and kind != "message":
        form = "list"
    guarded = _guard(answer, kind, policy, form, supports)
    whole = _invoked(guarded)
    client = _heard(guarded, how)
    assert SECRET not in client.all
    assert SECRET not in (whole or "")
    if not supports:  # A list of sources at the end is judged only with the whole.
        assert client.rejected == (whole is None)
        assert client.text == whole or whole is None


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(_answers(), _KINDS, st.sampled_from([form for form in FORMS if form != "blocks"]))
def test_what_passes_has_our_marks_alone(answer: list[str], kind: str, form: Any) -> None:
    client = _heard(_guard(answer, kind, "strip", form, False), "stream")
    prose = re.sub(r"```.*?```|`[^`]*`", "", client.text, flags=re.DOTALL)
    assert "7]" not in prose
    assert "【7】" not in prose
    assert "evil" not in client.text
    assert "javascript" not in client.text


def test_a_mapping_of_citations_quotes_documents_alone() -> None:
    said = f"The Louvre opened in 1793. It {SECRET} fell in 1850 (Source: 1)."
    output = _guard([said], "mapping", "strip", "list", False).invoke("When?")
    assert SECRET not in repr(output)
    for one in output["citations"]:
        text = LOUVRE[one["number"] - 1].page_content
        assert one["quote"] == text[one["document_start"] : one["document_end"]]


def test_only_the_trace_has_what_was_taken_out() -> None:
    said = f"The Louvre opened in 1793. In 1850 it {SECRET} burnt."
    found = _guard([said], "message", "strip", "numbers", False).with_trace().invoke("When?")
    assert SECRET in repr(found.trace)
    assert found.trace.outcome == "trimmed"
    assert SECRET not in repr(found.output)
    assert SECRET not in found.trace.reason
