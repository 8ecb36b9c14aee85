"""Work as a generator of effects, and the two loops that drive it.

An evaluation is a generator (`Steps`): it yields an effect, gets what came of that, and returns its
result. It holds all the logic and waits for nothing, so that `drive` and `adrive` are the only code
that exists once for threads and once for asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from demur._undetermined import UndeterminedError
from demur.runtime.calls import Call
from demur.runtime.pool import as_completed
from demur.runtime.retry import CallPolicy
from demur.runtime.tries import Outcome
from demur.schema import Usage

T = TypeVar("T")


@dataclass(frozen=True)
class Calls:
    """Effect: calls are made side by side. What comes of them is sent back in their order."""

    calls: Sequence[Call[object]]


@dataclass
class Costs:
    """What the calls of an evaluation came to."""

    usage: dict[str, Usage] = field(default_factory=dict)
    """What the calls of each stage cost."""
    causes: dict[str, None] = field(default_factory=dict)
    """Why calls failed, each kind of error once."""

    @property
    def total(self) -> Usage:
        """What all of them cost."""
        return sum(self.usage.values(), Usage())

    def count(self, stage: str, outcome: Outcome[object]) -> None:
        """Write down a call."""
        causes = () if outcome.cause is None else (outcome.cause,)
        self.add(Costs({stage: outcome.usage}, dict.fromkeys(causes)))

    def add(self, further: Costs) -> None:
        """Write down what others have."""
        for stage, usage in further.usage.items():
            self.usage[stage] = self.usage.get(stage, Usage()) + usage
        self.causes.update(further.causes)


@dataclass(frozen=True)
class Spent:
    """Effect: what was spent elsewhere counts here."""

    costs: Costs


class Telling(Protocol):
    """Effect: callbacks are told something. Nothing comes back, and nothing is accounted."""

    def tell(self, config: RunnableConfig) -> None:
        """Tell it in this thread."""
        ...

    async def atell(self, config: RunnableConfig) -> None:
        """Tell it in the running loop."""
        ...


Effect = Calls | Spent | Telling
Steps = Generator[Effect, "Sequence[Outcome[object]] | None", T]
"""An evaluation that waits for nothing itself. `ask` and `ask_all` yield calls for it, and know the
types of what comes back."""


def ask(call: Call[T], failing: str = "") -> Steps[T]:
    """Have a call made, and return its value. It is used with `yield from`.

    Raises:
        UndeterminedError: The call failed. The message begins with `failing`, if that is given.
    """
    (outcome,) = yield from ask_all([call])
    return outcome.expect(failing)


def ask_all(calls: Sequence[Call[T]]) -> Steps[list[Outcome[T]]]:
    """Have calls made side by side, for the outcome of each in their order."""
    if not calls:
        return []
    outcomes = yield Calls(calls)
    return list(cast("Sequence[Outcome[T]]", outcomes))


def attempted(steps: Steps[T]) -> Steps[Outcome[T]]:
    """Take the steps, and return an outcome even if they raise `UndeterminedError`."""
    try:
        return Outcome((yield from steps))
    except UndeterminedError as error:
        return Outcome(error=str(error))


def drive(steps: Steps[T], config: RunnableConfig, policy: CallPolicy | None) -> tuple[T, Costs]:
    """Run an evaluation in this thread; calls side by side run in others.

    Raises:
        UndeterminedError: The steps raise it, and nothing in them catches it.
    """
    costs, came = Costs(), None
    while True:
        # Only around the generator: a guarded chain may raise a StopIteration of its own.
        try:
            effect = steps.send(came)
        except StopIteration as stop:
            return cast(T, stop.value), costs
        came = None
        if isinstance(effect, Calls):
            came = _made(effect.calls, config, policy)
            _count(costs, effect.calls, came)
        elif isinstance(effect, Spent):
            costs.add(effect.costs)
        else:
            effect.tell(config)


async def adrive(
    steps: Steps[T], config: RunnableConfig, policy: CallPolicy | None
) -> tuple[T, Costs]:
    """As `drive`, with calls side by side as tasks of the running loop."""
    costs, came = Costs(), None
    while True:
        try:
            effect = steps.send(came)
        except StopIteration as stop:
            return cast(T, stop.value), costs
        came = None
        if isinstance(effect, Calls):
            came = await _amade(effect.calls, config, policy)
            _count(costs, effect.calls, came)
        elif isinstance(effect, Spent):
            costs.add(effect.costs)
        else:
            await effect.atell(config)


def _made(
    calls: Sequence[Call[object]], config: RunnableConfig, policy: CallPolicy | None
) -> Sequence[Outcome[object]]:
    if len(calls) == 1:
        return [calls[0].run(config, policy)]

    def make(place: int) -> tuple[int, Outcome[object]]:
        return place, calls[place].run(config, policy)

    # No more threads than can be at work: the others would only wait for a slot, out of order.
    at_once = max(call.at_once(policy) for call in calls)
    outcomes: Mapping[int, Outcome[object]] = dict(as_completed(make, range(len(calls)), at_once))
    return [outcomes[place] for place in range(len(calls))]


async def _amade(
    calls: Sequence[Call[object]], config: RunnableConfig, policy: CallPolicy | None
) -> Sequence[Outcome[object]]:
    if len(calls) == 1:
        return [await calls[0].arun(config, policy)]
    tasks = [asyncio.ensure_future(call.arun(config, policy)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:  # of one that is no outcome: the others end with it
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


def _count(
    costs: Costs, calls: Sequence[Call[object]], outcomes: Sequence[Outcome[object]]
) -> None:
    for call, outcome in zip(calls, outcomes, strict=True):
        costs.count(call.stage, outcome)
