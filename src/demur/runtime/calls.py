"""The kinds of calls: requests to chat models, to Runnables, and work of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from demur.runtime.counting import prompt_tokens
from demur.runtime.hedging import ahedged, hedged
from demur.runtime.in_process import is_local
from demur.runtime.in_time import GRACE, ain_time, in_time
from demur.runtime.inherited import refusal
from demur.runtime.limits import Slots, acquired, ashare, hedges_of, loop_slot, share, thread_slot
from demur.runtime.pool import within
from demur.runtime.retry import CallPolicy, is_control_flow, policy_for
from demur.runtime.scope import current_scope
from demur.runtime.tries import Outcome, Reply, Tries, current_account
from demur.schema import Usage

T = TypeVar("T")
Input = TypeVar("Input")
T_co = TypeVar("T_co", covariant=True)

NO_STREAM = "nostream"
"""On a run whose tokens nobody is to see: langgraph leaves them out of `stream_mode="messages"`."""
JUDGE = "demur:judge"
"""On every run that judges."""


class Call(Protocol[T_co]):
    """Something to wait for, in a thread or in a task, of which a value comes."""

    @property
    def stage(self) -> str:
        """What the call is for: its usage is accounted under this name."""
        ...

    def at_once(self, policy: CallPolicy | None) -> int:
        """How many of such calls may be under way at a time."""
        ...

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call. A failure is an outcome, never an exception."""
        ...

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """As `run`, natively asynchronous."""
        ...


@dataclass(frozen=True)
class ChatCall:
    """One prompt to one chat model."""

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

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[Reply]:
        """Make the call in this thread."""
        if refused := refusal(self.model):
            return Outcome(error=refused, cause=refused)
        policy = policy_for(self.model, policy)
        attempt = partial(self._run, config, policy)
        if self.sample is not None:
            return attempt()
        outcome, joined = share(self._key(policy), attempt)
        return _joined(outcome) if joined else outcome

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[Reply]:
        """Make the call in the running loop."""
        if refused := refusal(self.model):
            return Outcome(error=refused, cause=refused)
        policy = policy_for(self.model, policy)
        attempt = partial(self._arun, config, policy)
        if self.sample is not None:
            return await attempt()
        outcome, joined = await ashare(self._key(policy), attempt)
        return _joined(outcome) if joined else outcome

    def _run(self, config: RunnableConfig, policy: CallPolicy) -> Outcome[Reply]:
        tries = Tries(policy, self.messages, *self._tokens())
        child = _config(config, self.stage)
        invoke = partial(self.model.invoke, self._prompt(), child, **self.options)
        after = self._hedged_after(policy)
        slot = thread_slot(self.model, policy.max_concurrency)
        while True:
            has_slot = slot.acquire(timeout=tries.left)
            try:
                if not tries.reserve(has_slot):
                    return tries.outcome()
                with tries as timeout:
                    if after is None:
                        tries.message = within(timeout, invoke)
                    else:
                        second = partial(self._second, tries, slot)
                        tries.message = hedged(invoke, timeout, after, second)
            finally:
                if has_slot:
                    slot.release()
            if tries.delay is None:
                return tries.outcome()
            time.sleep(tries.wait())

    async def _arun(self, config: RunnableConfig, policy: CallPolicy) -> Outcome[Reply]:
        tries = Tries(policy, self.messages, *self._tokens())
        child = _config(config, self.stage)
        invoke = partial(self.model.ainvoke, self._prompt(), child, **self.options)
        after = self._hedged_after(policy)
        slot = loop_slot(self.model, policy.max_concurrency)
        while True:
            has_slot = await acquired(slot, tries.left)
            try:
                if not tries.reserve(has_slot):
                    return tries.outcome()
                with tries as timeout:
                    if after is None:
                        tries.message = await asyncio.wait_for(invoke(), timeout)
                    else:
                        second = partial(self._asecond, tries, slot)
                        tries.message = await ahedged(invoke, timeout, after, second)
            finally:
                if has_slot:
                    slot.release()
            if tries.delay is None:
                return tries.outcome()
            await asyncio.sleep(tries.wait())

    def _hedged_after(self, policy: CallPolicy) -> float | None:
        """When the request is made a second time; None: never."""
        if policy.hedge_after is None or self.sample is not None or is_local(self.model):
            return None
        hedges_of(self.model).earn()
        return policy.hedge_after

    @contextmanager
    def _second(self, tries: Tries, slot: Slots) -> Iterator[bool]:
        """What the second request holds: a slot that is free, if it may be made at all."""
        has_slot = slot.acquire(timeout=0)
        try:
            yield has_slot and hedges_of(self.model).take() and tries.hedge()
        finally:
            if has_slot:
                slot.release()

    @asynccontextmanager
    async def _asecond(self, tries: Tries, slot: asyncio.Semaphore) -> AsyncIterator[bool]:
        has_slot = await acquired(slot, 0)
        try:
            yield has_slot and hedges_of(self.model).take() and tries.hedge()
        finally:
            if has_slot:
                slot.release()

    def _key(self, policy: CallPolicy) -> Hashable:
        # With policy and budget: who is patient, or can pay, must not get another's failure.
        scope = current_scope()
        prompt = tuple((message.type, str(message.content)) for message in self.messages)
        return (
            id(self.model),
            prompt,
            str(sorted(self.options.items())),
            policy,
            id(current_account()),
            None if scope is None else scope.until,
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
class RunnableCall(Generic[Input, T]):
    """One call of a Runnable, such as a retriever."""

    runnable: Runnable[Input, T]
    input: Input
    stage: str
    raises: Callable[[Exception], bool] = lambda error: False
    """Whether an exception is raised to whoever drives, and is no outcome of the call."""
    beyond: float = 0.0
    """Seconds that it may take beyond what its scope has left, at least 0."""

    def at_once(self, policy: CallPolicy | None) -> int:
        """As many as the policy allows for a model."""
        return (policy or CallPolicy()).max_concurrency

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T]:
        """Make the call in this thread."""
        started = time.monotonic()
        try:
            invoke = partial(self.runnable.invoke, self.input, _config(config, self.stage))
            value = in_time(invoke, self.beyond)
        except Exception as error:
            if is_control_flow(error) or self.raises(error):
                raise
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T]:
        """Make the call in the running loop."""
        started = time.monotonic()
        try:
            invoke = partial(self.runnable.ainvoke, self.input, _config(config, self.stage))
            value = await ain_time(invoke, self.beyond)
        except Exception as error:
            if is_control_flow(error) or self.raises(error):
                raise
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))


@dataclass(frozen=True)
class LocalCall(Generic[T]):
    """Work of this process that would hold up an event loop."""

    work: Callable[[], T]
    stage: str

    def at_once(self, policy: CallPolicy | None) -> int:
        """As many as the policy allows for a model."""
        return (policy or CallPolicy()).max_concurrency

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T]:
        """Do it in this thread."""
        started = time.monotonic()
        try:
            value = in_time(self.work, GRACE)
        except Exception as error:
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T]:
        """Do it in a thread of the loop's."""
        started = time.monotonic()
        try:
            return await ain_time(partial(asyncio.to_thread, self.run, config, policy), GRACE)
        except TimeoutError as error:  # of threads there was none free
            return Outcome.failed(error, time.monotonic() - started)


def _config(config: RunnableConfig, stage: str) -> RunnableConfig:
    tags = dict.fromkeys([*(config.get("tags") or ()), NO_STREAM, JUDGE])
    return {**config, "tags": [*tags], "run_name": stage}


def _joined(outcome: Outcome[T]) -> Outcome[T]:
    """The outcome for a request that another, identical one answered: counted once, there."""
    return replace(outcome, usage=Usage(cached=1) if outcome.error is None else Usage())


def _elapsed(started: float) -> Usage:
    return Usage(seconds=time.monotonic() - started)
