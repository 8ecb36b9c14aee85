"""Attack with wrong text beside a text that passes, and with verdicts that are not valid."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import product
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import Evaluation, Guard, Sample
from demur.schema import ABSTAIN

from .listening import LISTENERS, Heard
from .play import SHAPES, ChainError, Judge
from .truth import RIGHT, Hung, Tally, is_wrong, marks, tried, wrong

_BAD = wrong(0)
_BLOCKS: dict[str, dict[str, Any]] = {
    "reasoning": {"type": "reasoning", "reasoning": _BAD},
    "a refusal": {"type": "refusal", "refusal": _BAD},
    "an image": {"type": "image", "url": f"data:{_BAD}"},
    "a block of one's own": {"type": "said", "said": _BAD},
    "a citation": {"type": "text", "text": RIGHT, "annotations": [{"cited_text": _BAD}]},
}
_CALL: dict[str, Any] = {"name": "tell", "args": {"said": _BAD}, "id": "1", "type": "tool_call"}

OUTPUTS: dict[str, Callable[[], Any]] = {
    **{
        f"{name}": lambda block=block: AIMessage([{"type": "text", "text": RIGHT}, block])
        for name, block in _BLOCKS.items()
    },
    "additional_kwargs": lambda: AIMessage(RIGHT, additional_kwargs={"said": _BAD}),
    "a call of a tool": lambda: AIMessage(RIGHT, tool_calls=[_CALL]),
    "a call that cannot be read": lambda: AIMessage(
        RIGHT, invalid_tool_calls=[{"name": "tell", "args": _BAD, "id": "1", "error": None}]
    ),
    "two answers": lambda: {"answer": RIGHT, "output": _BAD},
    "two answers, the other way round": lambda: {"output": RIGHT, "answer": _BAD},
    "a message under a key": lambda: {
        "answer": AIMessage(RIGHT, additional_kwargs={"said": _BAD}, tool_calls=[_CALL])
    },
}
"""Outputs whose text passes, and that say something wrong beside it."""

VERDICTS: dict[str, Callable[[], Any]] = {
    "passed is a string": lambda: Evaluation.model_construct(name="none", passed="false"),
    "passed is NaN": lambda: Evaluation.model_construct(name="none", passed=math.nan),
    "passed is 1": lambda: Evaluation.model_construct(name="none", passed=1, error="it is none"),
    "a copy that passes and has an error": lambda: Evaluation(name="none", error="none").model_copy(
        update={"passed": True}
    ),
    "Abstain with a score": lambda: Evaluation(name="none", label=ABSTAIN, score=0.0),
    "no verdict at all": lambda: Evaluation(name="none", score=1.0),
    "no evaluation": lambda: {"passed": True},
    "nothing": lambda: None,
}
"""What evaluators return for a wrong answer, none of which is a pass."""


def attack(count: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Run at most `count` combinations of outputs or verdicts with ways to listen."""
    draw, loop = random.Random(seed), asyncio.new_event_loop()
    beside = Tally("beside a text that passes")
    every = list(product(OUTPUTS, (False, True), ("buffer", "sentence"), LISTENERS))
    for output, streams, streaming, listen in draw.sample(every, min(count, len(every))):
        with beside:
            chain = _chain(OUTPUTS[output], streams)
            guard = Guard(chain, Judge(), streaming=streaming) if guarded else chain
            _try(guard, listen, loop, beside, output, f"{output}, streams: {streams}, {streaming}")
    yield beside
    none = Tally("verdicts that are none")
    verdicts = list(product(VERDICTS, LISTENERS))
    for verdict, listen in draw.sample(verdicts, min(count, len(verdicts))):
        with none:
            chain = SHAPES["string"].build(lambda: _BAD)
            guard = Guard(chain, _saying(VERDICTS[verdict])) if guarded else chain
            _try(guard, listen, loop, none, verdict, verdict)
    yield none
    loop.close()


def _chain(output: Callable[[], Any], streams: bool) -> Any:
    if not streams:
        return RunnableLambda(lambda given: output(), name="chain")

    def chunks(given: Iterator[Any]) -> Iterator[Any]:
        list(given)
        yield from _chunks(output())

    async def achunks(given: AsyncIterator[Any]) -> AsyncIterator[Any]:
        [_ async for _ in given]
        for one in _chunks(output()):
            yield one

    return RunnableGenerator(chunks, achunks, name="chain")


def _chunks(output: Any) -> Iterator[Any]:
    if isinstance(output, AIMessage):
        yield AIMessageChunk("", id="m")
        yield AIMessageChunk(**{**output.model_dump(exclude={"type"}), "id": "m"})
    else:
        yield from (AddableDict({key: value}) for key, value in output.items())


def _saying(verdict: Callable[[], Any]) -> Any:
    def judge(sample: Sample) -> Any:
        good = Evaluation(name="none", passed=True)
        return verdict() if is_wrong(sample.answer) else good

    return RunnableLambda(judge, name="judge")


def _try(
    guard: Any, listen: str, loop: asyncio.AbstractEventLoop, tally: Tally, kind: str, example: str
) -> None:
    heard = Heard(SHAPES["mapping"])
    _, error = tried(lambda: LISTENERS[listen](guard, heard), loop)
    if isinstance(error, Hung):
        tally.add("hung", kind, f"{example}, {listen}")
    elif isinstance(error, ChainError):
        tally.add("wrong", kind, f"{error} {example}, {listen}")
    elif error is not None:  # the output is refused, and the error must not quote it
        heard.things.append(error)
        tally.refuse(error)
    if marks(*heard.things):
        tally.add("leaks", kind, f"{example}, {listen}")
