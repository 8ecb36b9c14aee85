"""Write work as a generator of effects, and drive it in threads or in the event loop.

An evaluation is a generator (`Steps`). It yields an effect, receives the outcomes, and returns its
result. It holds all the logic and waits for nothing. So `drive` and `adrive` are the only code that
exists once for threads and once for asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from demur.runtime.calls import Call
from demur.runtime.policy import CallPolicy
from demur.runtime.pool import as_completed
from demur.runtime.tries import Outcome
from demur.runtime.undetermined import UndeterminedError
from demur.schema import Usage

T = TypeVar("T")


@dataclass(frozen=True)
class Calls:
    """Ask the driver to make calls side by side, and to send back their outcomes in order."""

    calls: Sequence[Call[object]]


@dataclass
class Costs:
    """Hold what the calls of an evaluation cost, and why some failed."""

    usage: dict[str, Usage] = field(default_factory=dict)
    """The usage of the calls of each stage, by the stage's name."""
    causes: dict[str, None] = field(default_factory=dict)
    """The kinds of errors with which calls failed, each once."""

    @property
    def total(self) -> Usage:
        """Return the usage of all stages together."""
        return sum(self.usage.values(), Usage())

    def count(self, stage: str, outcome: Outcome[object]) -> None:
        """Count a call that was made."""
        causes = () if outcome.cause is None else (outcome.cause,)
        self.add(Costs({stage: outcome.usage}, dict.fromkeys(causes)))

    def add(self, further: Costs) -> None:
        """Add the costs of other calls."""
        for stage, usage in further.usage.items():
            self.usage[stage] = self.usage.get(stage, Usage()) + usage
        self.causes.update(further.causes)


@dataclass(frozen=True)
class Spent:
    """Ask the driver to count costs that arose elsewhere."""

    costs: Costs


class Telling(Protocol):
    """Ask the driver to tell callbacks something, which returns nothing and costs nothing."""

    def tell(self, config: RunnableConfig) -> None:
        """Tell the callbacks in this thread."""
        ...

    async def atell(self, config: RunnableConfig) -> None:
        """Tell the callbacks in the running loop."""
        ...


Effect = Calls | Spent | Telling
Steps = Generator[Effect, "Sequence[Outcome[object]] | None", T]
"""The type of an evaluation, which waits for nothing itself.

Inside it, `ask` and `ask_all` yield calls and return outcomes of the right type.
"""


def ask(call: Call[T], failing: str = "") -> Steps[T]:
    """Have a call made, and return its value. Use it with `yield from`.

    Raises:
        UndeterminedError: The call failed. The message begins with `failing`, if that is given.
    """
    (outcome,) = yield from ask_all([call])
    return outcome.expect(failing)


def ask_all(calls: Sequence[Call[T]]) -> Steps[list[Outcome[T]]]:
    """Have calls made side by side, and return their outcomes in order."""
    if not calls:
        return []
    outcomes = yield Calls(calls)
    return list(cast("Sequence[Outcome[T]]", outcomes))


def attempted(steps: Steps[T]) -> Steps[Outcome[T]]:
    """Run the steps, and return an outcome even if they raise `UndeterminedError`."""
    try:
        return Outcome((yield from steps))
    except UndeterminedError as error:
        return Outcome(error=str(error))


def drive(steps: Steps[T], config: RunnableConfig, policy: CallPolicy | None) -> tuple[T, Costs]:
    """Run an evaluation in this thread, and its calls side by side in other threads.

    Returns:
        The result of the evaluation, and the costs of its calls.

    Raises:
        UndeterminedError: The steps raise it and do not catch it.
    """
    costs, came = Costs(), None
    while True:
        # Only the generator is inside: a guarded chain may raise a StopIteration of its own.
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
    """Do the same as `drive`, with calls side by side as tasks of the running loop."""
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

    # No more threads than can be at work: further ones would only wait for a slot, out of order.
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
    except BaseException:  # an error that is no outcome ends the other calls, too
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


def _count(
    costs: Costs, calls: Sequence[Call[object]], outcomes: Sequence[Outcome[object]]
) -> None:
    for call, outcome in zip(calls, outcomes, strict=True):
        costs.count(call.stage, outcome)
