"""The one place through which every call goes, and the two loops that drive an evaluation.

An evaluation is a generator (`Steps`): it yields a batch of calls, gets their outcomes in the same
order, and returns its result. It holds all the logic and does no waiting, so that `drive` and
`adrive` are the only code that exists once for threads and once for asyncio.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from demur.runtime.counting import prompt_tokens
from demur.runtime.inherited import refusal
from demur.runtime.limits import ashare, loop_slot, share, thread_slot
from demur.runtime.retry import CallPolicy, is_control_flow, policy_for
from demur.runtime.threads import in_background, settle, within
from demur.runtime.tries import Outcome, Tries, current_account
from demur.schema import Usage

T = TypeVar("T")

NO_STREAM = "nostream"
"""On a run whose tokens nobody is to see: langgraph leaves them out of `stream_mode="messages"`."""
JUDGE = "demur:judge"
"""On every run that judges."""


class Call(Protocol):
    """Something to wait for, in a thread or in a task."""

    @property
    def stage(self) -> str:
        """What the call is for: its usage is accounted under this name."""
        ...

    def at_once(self, policy: CallPolicy | None) -> int:
        """How many of such calls may be under way at a time."""
        ...

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Make the call. A failure is an outcome, never an exception."""
        ...

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """As `run`, natively asynchronous."""
        ...


Steps = Generator[Sequence[Call], Sequence[Outcome], T]
"""An evaluation that waits for nothing itself: see the module's text."""


@dataclass(frozen=True)
class ChatCall:
    """One prompt to one chat model. Its outcome's value is a `Reply`."""

    model: BaseChatModel
    messages: Sequence[BaseMessage]
    stage: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the model's `invoke`, such as `max_tokens`."""
    sample: int | None = None
    """None: the request is deterministic, and identical ones in flight are sent once. A number: one
    of several samples; never merged, and cached apart from the others."""

    def at_once(self, policy: CallPolicy | None) -> int:
        """As many as the policy allows."""
        return policy_for(self.model, policy).max_concurrency

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Make the call in this thread."""
        if refused := refusal(self.model):
            return Outcome(error=refused, cause=refused)
        policy = policy_for(self.model, policy)
        attempt = partial(self._run, config, policy)
        if self.sample is not None:
            return attempt()
        outcome, joined = share(self._key(policy), attempt)
        return _joined(outcome) if joined else outcome

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Make the call in the running loop."""
        if refused := refusal(self.model):
            return Outcome(error=refused, cause=refused)
        policy = policy_for(self.model, policy)
        attempt = partial(self._arun, config, policy)
        if self.sample is not None:
            return await attempt()
        outcome, joined = await ashare(self._key(policy), attempt)
        return _joined(outcome) if joined else outcome

    def _run(self, config: RunnableConfig, policy: CallPolicy) -> Outcome:
        tries = Tries(policy, *self._tokens())
        child = _config(config, self.stage)
        invoke = partial(self.model.invoke, self._prompt(), child, **self.options)
        while True:
            with thread_slot(self.model, policy.max_concurrency):
                if not tries.reserve():
                    return tries.outcome()
                with tries as timeout:
                    tries.message = within(timeout, invoke)
            if tries.delay is None:
                return tries.outcome()
            time.sleep(tries.wait())

    async def _arun(self, config: RunnableConfig, policy: CallPolicy) -> Outcome:
        tries = Tries(policy, *self._tokens())
        child = _config(config, self.stage)
        invoke = partial(self.model.ainvoke, self._prompt(), child, **self.options)
        while True:
            async with loop_slot(self.model, policy.max_concurrency):
                if not tries.reserve():
                    return tries.outcome()
                with tries as timeout:
                    tries.message = await asyncio.wait_for(invoke(), timeout)
            if tries.delay is None:
                return tries.outcome()
            await asyncio.sleep(tries.wait())

    def _key(self, policy: CallPolicy) -> Hashable:
        # With policy and budget: who is patient, or can pay, must not get another's failure.
        prompt = tuple((message.type, str(message.content)) for message in self.messages)
        return (
            id(self.model),
            prompt,
            str(sorted(self.options.items())),
            policy,
            id(current_account()),
        )

    def _tokens(self) -> tuple[int, bool]:
        """What the call may cost, as far as it is known before it is made; whether by estimate."""
        account = current_account()
        if account is None or not account.counts_tokens:
            return 0, False
        prompt, estimated = prompt_tokens(self.model, self.messages)
        limits = (self.options.get("max_tokens"), getattr(self.model, "max_tokens", None))
        return prompt + next((limit for limit in limits if isinstance(limit, int)), 0), estimated

    def _prompt(self) -> list[BaseMessage]:
        messages = list(self.messages)
        if self.sample:
            # LangChain's cache keys hold the whole message, and no provider is sent this field: so
            # every sample has an entry of its own in any cache. The first one has the plain key.
            messages[-1] = messages[-1].model_copy(
                update={"response_metadata": {"sample": self.sample}}
            )
        return messages


@dataclass(frozen=True)
class RunnableCall:
    """One call of a Runnable, such as a retriever. Its outcome's value is what that returns."""

    runnable: Runnable[Any, Any]
    input: Any
    stage: str

    def at_once(self, policy: CallPolicy | None) -> int:
        """As many as the policy allows for a model."""
        return (policy or CallPolicy()).max_concurrency

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Make the call in this thread."""
        started = time.monotonic()
        try:
            value = self.runnable.invoke(self.input, _config(config, self.stage))
        except Exception as error:
            if is_control_flow(error):
                raise
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Make the call in the running loop."""
        started = time.monotonic()
        try:
            value = await self.runnable.ainvoke(self.input, _config(config, self.stage))
        except Exception as error:
            if is_control_flow(error):
                raise
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))


@dataclass(frozen=True)
class LocalCall:
    """Work of this process that would hold up an event loop. Its outcome's value is the result."""

    work: Callable[[], Any]
    stage: str

    def at_once(self, policy: CallPolicy | None) -> int:
        """As many as the policy allows for a model."""
        return (policy or CallPolicy()).max_concurrency

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Do it in this thread."""
        started = time.monotonic()
        try:
            value = self.work()
        except Exception as error:
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        """Do it in a thread of the loop's."""
        return await asyncio.to_thread(self.run, config, policy)


def _config(config: RunnableConfig, stage: str) -> RunnableConfig:
    tags = dict.fromkeys([*(config.get("tags") or ()), NO_STREAM, JUDGE])
    return {**config, "tags": [*tags], "run_name": stage}


def ask(calls: Sequence[Call]) -> Steps[list[Outcome]]:
    """Have calls made side by side: `outcomes = yield from ...` this."""
    if not calls:
        return []
    return list((yield calls))


@dataclass
class Costs:
    """What the calls of an evaluation came to."""

    usage: dict[str, Usage] = field(default_factory=dict)
    """By stage."""
    causes: dict[str, None] = field(default_factory=dict)
    """Of the calls that failed, without repeats."""

    @property
    def total(self) -> Usage:
        """What all of them cost."""
        return sum(self.usage.values(), Usage())

    def count(self, stage: str, outcome: Outcome) -> None:
        """Write down a call."""
        self.usage[stage] = self.usage.get(stage, Usage()) + outcome.usage
        if outcome.cause is not None:
            self.causes[outcome.cause] = None


def drive(steps: Steps[T], config: RunnableConfig, policy: CallPolicy | None) -> tuple[T, Costs]:
    """Run an evaluation in this thread; the calls of a batch run side by side in others."""
    ledger = Costs()
    outcomes: Sequence[Outcome] | None = None
    while True:
        # Only around the generator: a guarded chain may raise a StopIteration of its own.
        try:
            calls = next(steps) if outcomes is None else steps.send(outcomes)
        except StopIteration as stop:
            return cast(T, stop.value), ledger
        outcomes = _run_all(calls, config, policy)
        for call, outcome in zip(calls, outcomes, strict=True):
            ledger.count(call.stage, outcome)


async def adrive(
    steps: Steps[T], config: RunnableConfig, policy: CallPolicy | None
) -> tuple[T, Costs]:
    """As `drive`, with the calls of a batch as tasks of the running loop."""
    ledger = Costs()
    outcomes: Sequence[Outcome] | None = None
    while True:
        try:
            calls = next(steps) if outcomes is None else steps.send(outcomes)
        except StopIteration as stop:
            return cast(T, stop.value), ledger
        outcomes = await _arun_all(calls, config, policy)
        for call, outcome in zip(calls, outcomes, strict=True):
            ledger.count(call.stage, outcome)


def _run_all(
    calls: Sequence[Call], config: RunnableConfig, policy: CallPolicy | None
) -> Sequence[Outcome]:
    if len(calls) == 1:
        return [calls[0].run(config, policy)]
    futures: list[Future[Outcome]] = [Future() for _ in calls]
    waiting = deque(zip(calls, futures, strict=True))

    def work() -> None:
        while True:
            try:
                call, future = waiting.popleft()
            except IndexError:
                return
            settle(future, partial(call.run, config, policy))

    # No more threads than can be at work: the others would only wait for a slot, out of order.
    for _ in range(min(len(calls), max(call.at_once(policy) for call in calls))):
        in_background(work)
    try:
        return [future.result() for future in futures]
    finally:
        waiting.clear()  # after an interrupt, what has not begun never will


async def _arun_all(
    calls: Sequence[Call], config: RunnableConfig, policy: CallPolicy | None
) -> Sequence[Outcome]:
    if len(calls) == 1:
        return [await calls[0].arun(config, policy)]
    return await asyncio.gather(*(call.arun(config, policy) for call in calls))


def _joined(outcome: Outcome) -> Outcome:
    """The outcome for a request that another, identical one answered: counted once, there."""
    return replace(outcome, usage=Usage(cached=1) if outcome.error is None else Usage())


def _elapsed(started: float) -> Usage:
    return Usage(seconds=time.monotonic() - started)
