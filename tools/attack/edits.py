"""Attack answers with wrong sentences: citations are put in, and failing sentences taken out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from demur import (
    Abstain,
    Block,
    CitationSupport,
    Cite,
    Claim,
    ClaimLabel,
    Evaluation,
    Evidence,
    Guard,
    Sample,
    Span,
    Strip,
)
from demur.evaluators import Evaluator, pieces
from demur.guard import REFUSAL
from demur.runtime import Steps

from .listening import LISTENERS, Heard, where
from .play import SHAPES, Script
from .truth import DOCUMENT, MARKS, Hung, Tally, is_wrong, marks, tried

URL = "https://towers.example/amber"
_SOURCE = Document(DOCUMENT, metadata={"title": "Tower guide", "url": URL})
_RIGHT = (
    "The Amber Tower stands in Lund.",
    "The tower is 84 metres tall.",
    "In 1911 the tower was opened.",
    "Lund has a tower.",
)
_WRONG = (
    "The Amber Tower {} stands in Lund.",
    "The tower is {} metres tall.",
    "In {} the tower was opened.",
    "{} wrote of the tower.",
)
_OWN = (
    "",
    "",
    " [9]",
    " [^9]",
    " [[9]](https://evil.example)",
    " 【9】",
    " (Source: 9)",
    " [【9】9]",
)
"""The chain's own citations. They name a document that does not exist."""
_ASKED = ("amber", "tower", "tall")

FORMS: dict[str | None, str] = {
    None: "{}",
    "numbers": "{} [1]",
    "footnotes": "{} [^1]",
    "links": f"{{}} [[1]]({URL})",
    "list": "{}",
    "blocks": "{}",
}
"""How each form of a citation marks a sentence."""
_NOTE = f"\n\n[^1]: [Tower guide]({URL}): “{DOCUMENT}”"
POLICIES: dict[str, Any] = {
    "strip": Strip(),
    "strip, else block": {"any": Strip(), "end": Block()},
    "abstain": Abstain(),
    "block": Block(),
    "again": None,
}
_SHAPES = [
    *("string", "string, streamed", "message", "message, streamed", "content blocks"),
    *("prompt | model", "prompt | model | parser", "mapping", "mapping of a message"),
    *("AddableDict, streamed", "assign"),
]
"""The shapes in which an answer is a text."""


class Rests(Evaluator):
    """Support each sentence by the whole first document, unless the sentence is wrong."""

    @property
    def claim_level(self) -> bool:
        """Return True: this evaluator can judge single sentences."""
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        claims = tuple(
            _claim(sample.answer, part.begin, part.end) for part in pieces(sample.answer)
        )
        passed = not is_wrong(sample.answer)
        said = f"of {sample.answer!r}"
        return Evaluation(
            name="rests", score=float(passed), passed=passed, explanation=said, claims=claims
        )


def _claim(answer: str, start: int, end: int) -> Claim:
    text, span = answer[start:end], Span(start=start, end=end)
    if is_wrong(text):
        return Claim(text=text, span=span, label=ClaimLabel.CONTRADICTION)
    whole = Span(start=0, end=len(DOCUMENT))
    evidence = Evidence(context=0, span=whole, text=DOCUMENT, label=ClaimLabel.ENTAILMENT)
    return Claim(text=text, span=span, label=ClaimLabel.ENTAILMENT, evidence=(evidence,))


@dataclass(frozen=True)
class Case:
    """Describe one guard, the answers of its chain, and one way to listen."""

    shape: str
    answers: Sequence[Sequence[tuple[str, str]]]
    """For each attempt, the sentences. Each is a pair of the text without its full stop and its
    citation."""
    form: str | None
    policy: str
    supports: bool
    """Whether the chain's own citations are judged too."""
    streaming: str
    listen: str

    @property
    def texts(self) -> list[str]:
        """Return the answers of the chain as texts."""
        return [" ".join(f"{one}{own}." for one, own in answer) for answer in self.answers]


def expected(case: Case) -> str | None:
    """Return the text that must leave, worked out without the guard; None for an error."""
    first = case.answers[0]
    if case.policy == "again":
        right = [answer for answer in case.answers if not any(is_wrong(one) for one, _ in answer)]
        return _left(case, right[0]) if right else REFUSAL
    left = [one for one in first if not is_wrong(one[0])]
    strips = case.policy.startswith("strip") and left and _still_answers(first, left)
    if left == [*first] or strips:
        return _left(case, left)
    return None if case.policy in ("block", "strip, else block") else REFUSAL


def _still_answers(whole: Sequence[tuple[str, str]], left: Sequence[tuple[str, str]]) -> bool:
    before, after = (" ".join(one for one, _ in said).lower() for said in (whole, left))
    return all(word in after for word in _ASKED if word in before)


def _left(case: Case, answer: Sequence[tuple[str, str]]) -> str:
    if case.form is None:
        return " ".join(f"{one}{own}." for one, own in answer)
    text = " ".join(f"{FORMS[case.form].format(one)}." for one, _ in answer)
    return text + (_NOTE if case.form == "footnotes" else "")


def cases(count: int, seed: int) -> Iterator[Case]:
    """Yield `count` random cases."""
    draw = random.Random(seed)
    for _ in range(count):
        shape = draw.choice(_SHAPES)
        form = draw.choice([*FORMS])
        if form == "blocks" and not (
            "message" in shape or shape in ("prompt | model", "content blocks")
        ):
            form = "list"  # a text cannot hold blocks
        streaming = draw.choice(("buffer", "sentence"))
        yield Case(
            shape,
            [_said(draw, form is not None) for _ in range(2)],
            form,
            draw.choice([*POLICIES]),
            form is not None and draw.random() < 0.4,
            streaming,
            draw.choice([*LISTENERS]),
        )


def _said(draw: random.Random, cites: bool) -> list[tuple[str, str]]:
    said = draw.sample(_RIGHT, k=draw.randint(0, 3))
    for _ in range(draw.choice((0, 1, 1, 2)) if said else 1):
        wrong = draw.choice(_WRONG).format(draw.choice(MARKS) * 3)
        said.insert(draw.randint(0, len(said)), wrong)
    return [(one.removesuffix("."), draw.choice(_OWN) if cites else "") for one in said]


def build(case: Case, guarded: bool) -> Runnable[Any, Any]:
    """Return the guard of a case, or for the control its chain without a guard."""
    chain = SHAPES[case.shape].build(Script(*case.texts))
    if not guarded:
        return chain
    judges = [Rests(), *([CitationSupport(Rests())] if case.supports else [])]
    on_fail = POLICIES[case.policy]
    if case.supports and case.policy == "strip":
        on_fail = {"citation": Cite(), "any": Strip()}
    return Guard(
        chain,
        *judges,
        contexts=lambda output: [_SOURCE],
        on_fail=on_fail,
        on_pass=None if case.form is None else Cite(case.form),  # type: ignore[arg-type]
        streaming=case.streaming,
    )


def attack(count: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Run `count` random cases."""
    tallies = {form: Tally(f"edits: {form or 'no citations'}", "answers") for form in FORMS}
    loop = asyncio.new_event_loop()
    for case in cases(count, seed):
        with tallies[case.form] as tally:
            _try(case, tally, loop, guarded)
    loop.close()
    yield from tallies.values()


def _try(case: Case, tally: Tally, loop: asyncio.AbstractEventLoop, guarded: bool) -> None:
    heard = Heard(SHAPES[case.shape])
    _, heard.error = tried(lambda: LISTENERS[case.listen](build(case, guarded), heard), loop)
    if isinstance(heard.error, Hung):
        tally.add("hung", f"{case.streaming}, {case.listen}", case)
        return
    for place in {where(one) for one in [*heard.things, heard.error] if marks(one)}:
        tally.add("leaks", f"{place} ({case.listen}, {case.streaming})", case)
    if not guarded:
        if is_wrong(case.texts[0]) and not marks(*heard.things):
            tally.add("wrong", "the attack is blind", case)
        return
    if case.form is not None and "9" in heard.text.replace("1911", ""):
        tally.add("leaks", f"a citation of the chain's ({case.listen}, {case.streaming})", case)
    got = None if heard.error is not None else heard.text
    wanted = expected(case)
    fits = got == wanted or (case.supports and _is_of(case, got))
    if not fits or (heard.error and type(heard.error).__name__ != "AnswerRejected"):
        what = f"{case.policy}, {case.listen}, {case.streaming}, {case.shape}"
        tally.add("wrong", what, f"{got!r} {heard.error!r}, not {wanted!r}: {case}")


def _is_of(case: Case, text: str | None) -> bool:
    """Return whether a text is a refusal, or consists only of whole right sentences.

    If citations are judged, a sentence may be removed because of its citation, and all attempts may
    be used up.
    """
    if text in (None, REFUSAL):
        return True
    assert text is not None
    right = {
        _left(case, [one]) for answer in case.answers for one in answer if not is_wrong(one[0])
    }
    bare = {one.removesuffix(_NOTE) for one in right}
    said = text.removesuffix(_NOTE)
    return said.endswith(".") and {f"{one}." for one in said[:-1].split(". ")} <= bare
