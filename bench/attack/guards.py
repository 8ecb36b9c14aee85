"""Guards x chains x policies x ways to listen: what a client gets, against what is known of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda

from demur import Abstain, Annotate, Block, Guard, Regenerate, Repair, Retrieve
from demur.guard.events import REPLACE
from demur.guard.recovery import REFUSAL

from .play import JUDGES, SHAPES, Broken, Judge, Script, Shape, Speaker, judges
from .truth import DOCUMENT, QUESTION, RIGHT, Hung, Tally, is_wrong, marks, time_limit, wrong

GIVEN = {"input": QUESTION}
LIMIT = 10.0
"""Seconds after which a call hangs."""
_REPAIRED = 20
"""The number of the first wrong text of a guard's own model."""

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
"""What a chain says, attempt by attempt; None raises."""


@dataclass(frozen=True)
class Policy:
    """What a guard does about what it rejects."""

    on_fail: Any = None
    model: tuple[str, ...] = ()
    """What the guard's own model says; without: it has none."""
    searches: bool = False
    told: bool = False
    """Whether the chain is told of the problems."""

    @property
    def end(self) -> str:
        """What is left in the end: "abstain", "annotate" or "block"."""
        final = self.on_fail.get("end") if isinstance(self.on_fail, dict) else self.on_fail
        kinds = {Annotate: "annotate", Block: "block"}
        return kinds.get(type(final), "abstain")

    @property
    def at_once(self) -> bool:
        """Whether nothing is tried again."""
        return isinstance(self.on_fail, (Abstain, Annotate, Block))

    def options(self) -> dict[str, Any]:
        """The guard's arguments."""
        found: dict[str, Any] = {"on_fail": self.on_fail}
        if self.model:
            found["model"] = Speaker(say=Script(*self.model))
        if self.searches:
            found["retriever"] = RunnableLambda(lambda query: [Document(f"{query}: {DOCUMENT}")])
        if self.told:
            found["with_feedback"] = lambda given, feedback: {
                "input": f"{given['input']}\n{feedback.text}"
            }
        return found


POLICIES = {
    "default": Policy(),
    "abstain": Policy(Abstain()),
    "annotate": Policy(Annotate()),
    "block": Policy(Block()),
    "told, then annotate": Policy({"any": Regenerate(), "end": Annotate()}, told=True),
    "told, then block": Policy({"any": Regenerate(), "end": Block()}, told=True),
    "repair": Policy(Repair(), model=(RIGHT,)),
    "repair, wrong": Policy(Repair(), model=(wrong(_REPAIRED), wrong(_REPAIRED + 1))),
    "retrieve": Policy(Retrieve(), model=(RIGHT,), searches=True),
    "retrieve, told": Policy(Retrieve(), searches=True, told=True),
}


@dataclass(frozen=True)
class Case:
    """One guard, one chain and one way to listen."""

    shape: str
    script: str
    judge: str
    on_error: str
    on_abstain: str
    policy: str
    streaming: str
    listen: str
    inside: bool = False
    """Whether the chain guards itself already."""

    def __str__(self) -> str:
        """For a person who wants to do it again."""
        guard = "a guard inside, " if self.inside else ""
        return (
            f"{guard}{self.shape}: {self.script}; {self.judge}, on_error={self.on_error}, "
            f"on_abstain={self.on_abstain}; {self.policy}; {self.streaming}, {self.listen}"
        )


@dataclass(frozen=True)
class Expected:
    """What is to come of a case."""

    texts: frozenset[str] = frozenset()
    """One of these."""
    noted: frozenset[str] = frozenset()
    """Or one of these with a note after it."""
    error: str | None = None
    """Or an error of this name."""

    def fits(self, heard: Heard) -> bool:
        """Whether that is what came."""
        if heard.error is not None:
            return type(heard.error).__name__ == self.error
        noted = any(heard.text.startswith(f"{one}\n\nNote") for one in self.noted)
        return heard.text in self.texts or noted

    def lets_out(self, heard: Heard) -> set[int]:
        """The marks that may be seen: those of the one text that was let through."""
        if heard.error is not None:
            return set()
        through = [one for one in (*self.texts, *self.noted) if heard.text.startswith(one)]
        return marks(*through)


def expected(case: Case) -> Expected:
    """What has to come of a case, worked out without the guard."""
    if case.inside:  # the inner guard leaves nothing to the outer one
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
        can_repair = bool(policy.model) and editable
        if found == "undetermined" or policy.at_once or (repeats and (by_model or not can_repair)):
            break
        by_model = can_repair
    if policy.end == "block" or not editable:
        return Expected(error="AnswerRejected")
    if policy.end == "annotate":
        return Expected(noted=frozenset(tried))
    return Expected(texts=frozenset([REFUSAL]))


def _texts(case: Case) -> tuple[str | None, ...]:
    """What the chain says; to state nothing, an answer has to state nothing in each sentence."""
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


# --- Listening ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Heard(BaseCallbackHandler):
    """What a client got."""

    shape: Shape
    text: str = ""
    """The answer as a client that follows events has it in the end."""
    error: BaseException | None = None
    things: list[Any] = field(default_factory=list)
    """All that came."""
    run_inline = True

    def take(self, chunk: Any) -> None:
        """A chunk of a stream."""
        self.things.append(chunk)
        self.text += self.shape.text(chunk)

    def whole(self, output: Any) -> None:
        """An answer that came as a whole."""
        self.things.append(output)
        if isinstance(output, BaseException):
            raise output
        self.text = self.shape.text(output)

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        """An event of the guard's."""
        self.things.append((name, data))
        if name == REPLACE:
            self.text = self.text[: data["keep"]]


Listen = Callable[[Runnable[Any, Any], Heard], Any]


def _config(heard: Heard) -> Any:
    return {"callbacks": [heard]}


def _invoke(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole(guard.invoke(GIVEN, _config(heard)))


async def _ainvoke(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole(await guard.ainvoke(GIVEN, _config(heard)))


def _batch(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole(guard.batch([GIVEN], _config(heard), return_exceptions=True)[0])


async def _abatch(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole((await guard.abatch([GIVEN], _config(heard), return_exceptions=True))[0])


def _stream(guard: Runnable[Any, Any], heard: Heard) -> None:
    for chunk in guard.stream(GIVEN, _config(heard)):
        heard.take(chunk)


async def _astream(guard: Runnable[Any, Any], heard: Heard) -> None:
    async for chunk in guard.astream(GIVEN, _config(heard)):
        heard.take(chunk)


async def _events(guard: Runnable[Any, Any], heard: Heard) -> None:
    """Unfiltered: inner runs show what the model wrote, so only the guard's own are read."""
    own = None
    async for event in guard.astream_events(GIVEN, version="v2"):
        own = own or event["run_id"]
        if event["event"] == "on_custom_event" or event["run_id"] == own:
            _hear(event, own, heard)


async def _quiet_events(guard: Runnable[Any, Any], heard: Heard) -> None:
    """With the filter that the docs recommend: all that it lets through."""
    own = None
    async for event in guard.astream_events(GIVEN, version="v2", exclude_tags=["nostream"]):
        own = own or event["run_id"]
        _hear(event, own, heard)


async def _quiet_events_around(guard: Runnable[Any, Any], heard: Heard) -> None:
    """The guard is a step of a chain."""
    steps = RunnableLambda(lambda given: given) | guard
    await _quiet_events(steps, heard)


def _hear(event: Any, own: Any, heard: Heard) -> None:
    if event["event"] == "on_custom_event":
        heard.on_custom_event(event["name"], event["data"])
    elif event["event"] == "on_chain_stream" and event["run_id"] == own:
        heard.take(event["data"]["chunk"])
    else:
        heard.things.append(event)


def _with_trace(guard: Runnable[Any, Any], heard: Heard) -> None:
    traced = guard.with_trace() if isinstance(guard, Guard) else guard
    found = traced.invoke(GIVEN, _config(heard))
    heard.whole(getattr(found, "output", found))


async def _awith_trace(guard: Runnable[Any, Any], heard: Heard) -> None:
    traced = guard.with_trace() if isinstance(guard, Guard) else guard
    found = await traced.ainvoke(GIVEN, _config(heard))
    heard.whole(getattr(found, "output", found))


LISTENERS: dict[str, Listen] = {
    "invoke": _invoke,
    "ainvoke": _ainvoke,
    "batch": _batch,
    "abatch": _abatch,
    "stream": _stream,
    "astream": _astream,
    "events": _events,
    "events, nostream": _quiet_events,
    "events, nostream, in a chain": _quiet_events_around,
    "with_trace": _with_trace,
    "with_trace, async": _awith_trace,
}


# --- The attack -----------------------------------------------------------------------------------

_CONDITIONS = [
    (judge, on_error, on_abstain)
    for judge in JUDGES
    for on_error in (["closed", "open", "raise"] if _verdict(judge) == "undetermined" else ["closed"])
    for on_abstain in (["pass", "fail"] if _verdict(judge) == "nothing" else ["pass"])
]


def cases(count: int, seed: int) -> Iterator[Case]:
    """Combinations, drawn without repeating one."""
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
    """The guard of a case; the control: its chain without one."""
    shape = SHAPES[case.shape]
    chain = shape.build(Script(*_texts(case)))
    if not guarded:
        return chain
    same: dict[str, Any] = {"answer": shape.answer, "streaming": case.streaming}
    if case.inside:
        chain = Guard(chain, Judge(), **same)
    return Guard(
        chain,
        *judges(case.judge),
        on_error=case.on_error,
        on_abstain=case.on_abstain,
        **POLICIES[case.policy].options(),
        **same,
    )


def attack(count: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Try so many combinations, and all of guards inside guards."""
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
    try:
        with time_limit(LIMIT):
            doing = LISTENERS[case.listen](build(case, guarded), heard)
            if doing is not None:
                loop.run_until_complete(doing)
    except Hung:
        tally.add("hung", f"{case.streaming}, {case.listen}", case)
        return
    except Exception as error:
        heard.error = error
    out = wanted.lets_out(heard)
    for where in {_where(one) for one in [*heard.things, heard.error] if marks(one) - out}:
        tally.add("leaks", f"{where} ({case.listen}, {case.streaming})", case)
    if not guarded:
        said = _texts(case)[0]
        if said and is_wrong(said) and not isinstance(said, Broken) and not marks(*heard.things):
            tally.add("wrong", "the attack is blind", case)
    elif not wanted.fits(heard):
        got = repr(heard.error) if heard.error else heard.text
        tally.add("wrong", f"{case.listen}, {case.streaming}, {case.shape}", f"{case}: {got!r}")


def _where(thing: Any) -> str:
    """What a client got, in a word."""
    if isinstance(thing, dict) and "event" in thing:
        return f"{thing['event']} of {thing['name']}"
    return str(thing[0]) if isinstance(thing, tuple) else type(thing).__name__
