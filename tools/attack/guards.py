"""Attack combinations of guards, chains, policies and ways to listen, with known results."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda

from demur import Abstain, Annotate, Block, Guard, Regenerate, Repair, Retrieve
from demur.guard import REFUSAL, UNCHECKED, Feedback

from .listening import LISTENERS, Heard, where
from .play import JUDGES, SHAPES, Broken, Judge, Script, Speaker, judges
from .truth import DOCUMENT, RIGHT, Hung, Tally, is_wrong, marks, tried, wrong

_REPAIRED = 20
"""The number of the first wrong text of a model that repairs."""

SCRIPTS: dict[str, tuple[str | None, ...]] = {
    "right": (RIGHT,),
    "wrong, right": (wrong(0), RIGHT),
    "wrong, wrong, right": (wrong(0), wrong(1), RIGHT),
    "always wrong": (wrong(0), wrong(1), wrong(2)),
    "the same wrong": (wrong(0),),
    "raises": (None,),
    "wrong, raises": (wrong(0), None),
    "breaks off": (Broken(wrong(0)),),
}
"""What a chain answers, attempt by attempt; None raises an error."""


@dataclass(frozen=True)
class Policy:
    """Describe what a guard does about answers that it rejects."""

    on_fail: Callable[[Any], Any] = lambda model: None
    """A function that takes a model and returns the guard's argument `on_fail`."""
    model: tuple[str, ...] = ()
    """The replies of the model that answers in place of the chain; if empty, the chain answers
    again."""

    @property
    def end(self) -> str:
        """Return what the guard does in the end: "abstain", "annotate" or "block"."""
        on_fail = self.on_fail(None)
        final = on_fail.get("end") if isinstance(on_fail, dict) else on_fail
        kinds = {Annotate: "annotate", Block: "block"}
        return kinds.get(type(final), "abstain")

    @property
    def at_once(self) -> bool:
        """Return whether the guard ends without another attempt."""
        return isinstance(self.on_fail(None), (Abstain, Annotate, Block))


def _tell(given: dict[str, str], feedback: Feedback) -> dict[str, str]:
    return {"input": f"{given['input']}\n{feedback.text}"}


# A retrieved document leaves with the answer that it supports, so it must not quote the query.
_SEARCH = RunnableLambda(lambda query: [Document(f"{len(query)} letters: {DOCUMENT}")])

POLICIES = {
    "default": Policy(),
    "abstain": Policy(lambda _: Abstain()),
    "annotate": Policy(lambda _: Annotate()),
    "block": Policy(lambda _: Block()),
    "told, then annotate": Policy(lambda _: {"any": Regenerate(_tell), "end": Annotate()}),
    "told, then block": Policy(lambda _: {"any": Regenerate(_tell), "end": Block()}),
    "repair": Policy(Repair, model=(RIGHT,)),
    "repair, wrong": Policy(Repair, model=(wrong(_REPAIRED), wrong(_REPAIRED + 1))),
    "retrieve": Policy(lambda model: Retrieve(_SEARCH, then=Repair(model)), model=(RIGHT,)),
    "retrieve, told": Policy(lambda _: Retrieve(_SEARCH, then=Regenerate(_tell))),
}


@dataclass(frozen=True)
class Case:
    """Describe one guard, one chain and one way to listen."""

    shape: str
    script: str
    judge: str
    on_error: str
    on_abstain: str
    policy: str
    streaming: str
    listen: str
    inside: bool = False
    """Whether the chain already guards itself."""

    def __str__(self) -> str:
        """Return a description for a person who wants to repeat the case."""
        guard = "a guard inside, " if self.inside else ""
        return (
            f"{guard}{self.shape}: {self.script}; {self.judge}, on_error={self.on_error}, "
            f"on_abstain={self.on_abstain}; {self.policy}; {self.streaming}, {self.listen}"
        )


@dataclass(frozen=True)
class Expected:
    """Hold the possible results of a case."""

    texts: frozenset[str] = frozenset()
    """The texts of which one may be returned."""
    noted: frozenset[str] = frozenset()
    """The texts of which one may be returned, with a note after it."""
    error: str | None = None
    """The name of the error that may be raised."""

    def fits(self, heard: Heard) -> bool:
        """Return whether the client got a possible result."""
        if heard.error is not None:
            return type(heard.error).__name__ == self.error
        noted = any(heard.text.startswith(f"{one}\n\nNote") for one in self.noted)
        return heard.text in self.texts or noted

    def lets_out(self, heard: Heard) -> set[int]:
        """Return the marks that may be seen: those of the one text that the guard lets through."""
        if heard.error is not None:
            return set()
        through = [one for one in (*self.texts, *self.noted) if heard.text.startswith(one)]
        return marks(*through)


def expected(case: Case) -> Expected:
    """Return the possible results of a case, worked out without the guard."""
    if case.inside:  # the inner guard leaves nothing for the outer guard to reject
        inner = replace(case, inside=False, judge="rejects", policy="default", on_error="closed")
        return expected(replace(inner, on_abstain="pass"))
    policy, texts = POLICIES[case.policy], _texts(case)
    editable = SHAPES[case.shape].editable
    tried: list[str] = []
    asked, by_model = {"chain": 0, "model": 0}, False
    for _ in range(3):
        source = policy.model if by_model else texts
        who = "model" if by_model else "chain"
        text = source[min(asked[who], len(source) - 1)]
        asked[who] += 1
        if text is None or isinstance(text, Broken):
            return Expected(error="ChainError")
        if not is_wrong(text):
            return Expected(texts=frozenset([text]))
        repeats = text in tried
        tried.append(text)
        found = _verdict(case.judge)
        if found == "undetermined" and case.on_error == "raise":
            return Expected(error="EvaluatorFailed")
        lets_through = {"undetermined": case.on_error == "open"}
        lets_through["nothing"] = case.on_abstain == "pass"
        if lets_through.get(found):
            return Expected(texts=frozenset([text]))
        by_model = bool(policy.model)
        in_vain = repeats or (by_model and not editable)
        if found == "undetermined" or policy.at_once or in_vain:
            break
    if policy.end == "block" or not editable:
        return Expected(error="AnswerRejected")
    if policy.end == "annotate":
        return Expected(noted=frozenset(tried))
    return Expected(texts=frozenset([UNCHECKED if found == "undetermined" else REFUSAL]))


def _texts(case: Case) -> tuple[str | None, ...]:
    """Return what the chain answers.

    For a judge that finds nothing to check, no sentence of a wrong answer may state anything.
    """
    texts = SCRIPTS[case.script]
    if "nothing" not in JUDGES[case.judge]:
        return texts
    alone = {text: wrong(number, alone=True) for number, text in enumerate(map(wrong, range(3)))}
    return tuple(Broken(one) if isinstance(one, Broken) else alone.get(one, one) for one in texts)


def _verdict(judge: str) -> str:
    kinds = JUDGES[judge]
    if {"quotes", "claims"} & {*kinds}:
        return "failed"
    return "undetermined" if {"undetermined", "raises"} & {*kinds} else "nothing"


# --- The attack -----------------------------------------------------------------------------------

_CONDITIONS = [
    (judge, on_error, on_abstain)
    for judge in JUDGES
    for on_error in ["closed", *(["open", "raise"] if _verdict(judge) == "undetermined" else [])]
    for on_abstain in (["pass", "fail"] if _verdict(judge) == "nothing" else ["pass"])
]


def cases(count: int, seed: int) -> Iterator[Case]:
    """Yield different combinations at random."""
    guarded = list(product(SHAPES, SCRIPTS, _CONDITIONS, POLICIES))
    inside = list(product(("string, streamed", "message, streamed", "mapping"), SCRIPTS))
    ways = list(product(("buffer", "sentence"), LISTENERS))
    total = len(guarded) * len(ways)
    for number in random.Random(seed).sample(range(total), min(count, total)):
        (shape, script, condition, policy), (streaming, listen) = (
            guarded[number // len(ways)],
            ways[number % len(ways)],
        )
        yield Case(shape, script, *condition, policy, streaming, listen)
    for (shape, script), (streaming, listen) in product(inside, ways):
        yield Case(
            shape, script, "rejects", "closed", "pass", "default", streaming, listen, inside=True
        )


def build(case: Case, guarded: bool) -> Runnable[Any, Any]:
    """Return the guard of a case, or for the control its chain without a guard."""
    shape = SHAPES[case.shape]
    chain = shape.build(Script(*_texts(case)))
    if not guarded:
        return chain
    same: dict[str, Any] = {"answer": shape.answer, "streaming": case.streaming}
    if case.inside:
        chain = Guard(chain, Judge(), **same)
    policy = POLICIES[case.policy]
    return Guard(
        chain,
        *judges(case.judge),
        on_error=case.on_error,
        on_abstain=case.on_abstain,
        on_fail=policy.on_fail(Speaker(say=Script(*map(shape.written, policy.model)))),
        **same,
    )


def attack(count: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Run `count` random combinations, and all combinations with a guard inside a guard."""
    tallies = {
        inside: Tally("guard inside a guard" if inside else "guard") for inside in (False, True)
    }
    loop = asyncio.new_event_loop()
    for case in cases(count, seed):
        with tallies[case.inside] as tally:
            _try(case, tally, loop, guarded)
    loop.close()
    yield from tallies.values()


def _try(case: Case, tally: Tally, loop: asyncio.AbstractEventLoop, guarded: bool) -> None:
    heard, wanted = Heard(SHAPES[case.shape]), expected(case)
    _, heard.error = tried(lambda: LISTENERS[case.listen](build(case, guarded), heard), loop)
    if isinstance(heard.error, Hung):
        tally.add("hung", f"{case.streaming}, {case.listen}", case)
        return
    out = wanted.lets_out(heard)
    for place in {where(one) for one in [*heard.things, heard.error] if marks(one) - out}:
        tally.add("leaks", f"{place} ({case.listen}, {case.streaming})", case)
    if not guarded:
        said = _texts(case)[0]
        if said and is_wrong(said) and not isinstance(said, Broken) and not marks(*heard.things):
            tally.add("wrong", "the attack is blind", case)
    elif not wanted.fits(heard):
        got = repr(heard.error) if heard.error else heard.text
        tally.add("wrong", f"{case.listen}, {case.streaming}, {case.shape}", f"{case}: {got!r}")
