"""Attack with concurrent calls, to see that no call gets the answer or verdict of another."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from operator import itemgetter
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from demur import Claim, ClaimLabel, Evaluation, Guard, Regenerate, Sample, ScoreCallbackHandler
from demur.evaluators import Evaluator
from demur.observe import Record
from demur.runtime import RunnableCall, Steps, ask

from .truth import Tally, is_wrong, marks, wrong

_WORKERS = 24
_PATIENCE = 300.0
"""The number of seconds after which a call that is not finished counts as hung."""
_NUMBER = re.compile(r"#(\d+)")


def _question(number: int) -> str:
    return f"How tall is tower #{number}?"


def _right(number: int) -> str:
    return f"Tower #{number} stands. Tower #{number} is tall."


def _numbers(*things: Any) -> set[int]:
    """Return the numbers of the calls that these things mention."""
    return {int(one) for thing in things for one in _NUMBER.findall(repr(thing))}


async def _later(value: Any) -> Any:
    await asyncio.sleep(random.random() / 500)
    return value


def _find(question: str) -> list[Document]:
    (number,) = _numbers(question)
    return [Document(f"Of tower #{number} all is known.")]


def _answer(given: dict[str, Any]) -> str:
    """Return a wrong answer for every third call, but a right one after feedback."""
    (number,) = _numbers(given["input"])
    again = "told of" in given["input"]
    return _right(number) if again or number % 3 else f"Tower #{number} stands. {wrong(0, True)}"


async def _aanswer(given: dict[str, Any]) -> str:
    return str(await _later(_answer(given)))


async def _afind(question: str) -> list[Document]:
    return list(await _later(_find(question)))


class _Judge(Evaluator):
    """Judge answers, and name the judged call in the claim."""

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        looking = RunnableLambda(self._look, self._alook)
        return (yield from ask(RunnableCall(looking, sample, "looking")))

    def _look(self, sample: Sample) -> Evaluation:
        (number,) = _numbers(sample.question)
        passed = not is_wrong(sample.answer)
        label = ClaimLabel.ENTAILMENT if passed else ClaimLabel.CONTRADICTION
        claims = (Claim(text=f"of #{number}", label=label),)
        return Evaluation(name="judge", score=float(passed), passed=passed, claims=claims)

    async def _alook(self, sample: Sample) -> Evaluation:
        return Evaluation.model_validate(await _later(self._look(sample)))


def _guard(streaming: Any) -> Guard[Any, Any]:
    chain: Runnable[Any, Any] = RunnablePassthrough.assign(
        context=itemgetter("input") | RunnableLambda(_find, _afind)
    ).assign(answer=RunnableLambda(_answer, _aanswer))

    def tell(given: dict[str, Any], feedback: Any) -> dict[str, Any]:
        return {**given, "input": f"{given['input']} told of {feedback.claims}"}

    return Guard(chain, _Judge(), streaming=streaming, on_fail=Regenerate(tell))


def attack(count: int, seed: int = 0) -> Iterator[Tally]:
    """Make `count` calls in each way, all with one guard and one handler."""
    for streaming in ("buffer", "sentence"):
        records: list[Record] = []
        handler = ScoreCallbackHandler(sink=records.append, max_queue=10 * count)
        guard = _guard(streaming)
        yield _threads(guard, handler, count, streaming)
        yield asyncio.run(_tasks(guard, handler, count, streaming))
        handler.close(_PATIENCE)
        yield _recorded(records, handler, streaming)


Call = Callable[[Guard[Any, Any], int, Any], Any]


def _traced(guard: Guard[Any, Any], number: int, config: Any) -> Any:
    found = guard.with_trace().invoke({"input": _question(number)}, config)
    return found.output, found.trace


def _streamed(guard: Guard[Any, Any], number: int, config: Any) -> Any:
    return [*guard.stream({"input": _question(number)}, config)], None


async def _atraced(guard: Guard[Any, Any], number: int, config: Any) -> Any:
    found = await guard.with_trace().ainvoke({"input": _question(number)}, config)
    return found.output, found.trace


async def _astreamed(guard: Guard[Any, Any], number: int, config: Any) -> Any:
    return [one async for one in guard.astream({"input": _question(number)}, config)], None


def _threads(guard: Guard[Any, Any], handler: Any, count: int, streaming: str) -> Tally:
    tally = Tally(f"at once, in threads, {streaming}", "calls")
    ways: list[Call] = [_traced, _streamed]
    config = {"callbacks": [handler]}
    with tally, ThreadPoolExecutor(_WORKERS) as pool:
        doing = {
            pool.submit(ways[at % 2], guard, at, config): (ways[at % 2].__name__, at)
            for at in range(count)
        }
        done, hung = wait(doing, _PATIENCE)
        for one in done:
            _check(one.result() if not one.exception() else one.exception(), *doing[one], tally)
        for one in hung:
            one.cancel()
            tally.add("hung", doing[one][0])
    tally.tried = count
    return tally


async def _tasks(guard: Guard[Any, Any], handler: Any, count: int, streaming: str) -> Tally:
    tally = Tally(f"at once, in tasks, {streaming}", "calls")
    ways: list[Call] = [_atraced, _astreamed]
    config = {"callbacks": [handler]}
    with tally:
        for start in range(0, count, 250):  # 250 calls run at the same time
            doing = {
                asyncio.ensure_future(ways[at % 2](guard, at, config)): (ways[at % 2].__name__, at)
                for at in range(start, min(start + 250, count))
            }
            done, hung = await asyncio.wait(doing, timeout=_PATIENCE)
            for one in done:
                _check(one.exception() or one.result(), *doing[one], tally)
            for one in hung:
                one.cancel()
                tally.add("hung", doing[one][0])
    tally.tried = count
    return tally


def _check(got: Any, way: str, number: int, tally: Tally) -> None:
    if isinstance(got, BaseException):
        tally.add("wrong", f"{way} raises {type(got).__name__}", got)
        return
    output, trace = got
    if marks(output):
        tally.add("leaks", way, f"#{number}: {output}")
    if _numbers(output, trace) != {number}:
        tally.add("wrong", f"{way}: another's", f"#{number}: {_numbers(output, trace)}")
    if isinstance(output, dict) and output["answer"] != _right(number):
        tally.add("wrong", f"{way}: the answer", f"#{number}: {output['answer']}")
    if trace is not None and (outcome := _outcome(number)) != trace.outcome:
        tally.add("wrong", f"{way}: the outcome", f"#{number}: {trace.outcome}, not {outcome}")


def _outcome(number: int) -> str:
    return "passed" if number % 3 else "recovered"


def _recorded(records: list[Record], handler: ScoreCallbackHandler, streaming: str) -> Tally:
    """Check the records of a handler that heard all calls."""
    tally = Tally(f"at once, recorded, {streaming}", "records")
    with tally:
        for record in records:
            spoken = _numbers([(one.answer, one.question, one.contexts) for one in record.attempts])
            if len(spoken) != 1:
                tally.add("wrong", "a record of several calls", spoken)
            elif record.outcome != _outcome(*spoken):
                tally.add("wrong", "the outcome", record.outcome)
        if (lost := handler.counts.dropped) or not records:
            tally.add("wrong", "records are missing", f"{lost} of {len(records)}")
    tally.tried = len(records)
    return tally
