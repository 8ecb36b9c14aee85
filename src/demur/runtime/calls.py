"""Define the kinds of calls: to chat models, to Runnables, and to blocking work of this process."""

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
from demur.runtime.failures import is_control_flow
from demur.runtime.hedging import ahedged, hedged
from demur.runtime.in_process import is_local
from demur.runtime.in_time import GRACE, ain_time, in_time
from demur.runtime.inherited import refusal
from demur.runtime.limits import Slots, acquired, ashare, hedges_of, loop_slot, share, thread_slot
from demur.runtime.policy import CallPolicy, policy_for
from demur.runtime.pool import within
from demur.runtime.scope import current_account, current_scope
from demur.runtime.tries import Outcome, Reply, Tries
from demur.schema import Usage

T = TypeVar("T")
Input = TypeVar("Input")
T_co = TypeVar("T_co", covariant=True)

NO_STREAM = "nostream"
"""The tag of a run whose tokens must not reach a client.

LangGraph leaves them out of `stream_mode="messages"`.
"""
JUDGE = "demur:judge"
"""The tag of every run that judges an answer."""


class Call(Protocol[T_co]):
    """Represent a request or a piece of work that a driver waits for, in a thread or in a task."""

    @property
    def stage(self) -> str:
        """Return the name of the stage under which the call's usage is accounted."""
        ...

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return how many of these calls may be under way at the same time."""
        ...

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in this thread, and return its outcome, even if it fails."""
        ...

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in the running loop, and return its outcome, even if it fails."""
        ...


@dataclass(frozen=True)
class ChatCall:
    """Send one prompt to one chat model."""

    model: BaseChatModel
    messages: Sequence[BaseMessage]
    stage: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the model's `invoke`, such as `max_tokens`."""
    sample: int | None = None
    """The number of the sample, from 0, if the same prompt is sent several times.

    Samples are never merged with identical requests, and each is cached apart from the others.
    None: the request is deterministic, and identical requests in flight are sent once.
    """

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return the `max_concurrency` of the policy for this model."""
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
        """Return after how many seconds the request is made a second time; None means never."""
        if policy.hedge_after is None or self.sample is not None or is_local(self.model):
            return None
        hedges_of(self.model).earn()
        return policy.hedge_after

    @contextmanager
    def _second(self, tries: Tries, slot: Slots) -> Iterator[bool]:
        """Take a free slot for a second request, and yield whether the request may be made."""
        with self._may(tries, slot, slot.acquire(timeout=0)) as may:
            yield may

    @asynccontextmanager
    async def _asecond(self, tries: Tries, slot: asyncio.Semaphore) -> AsyncIterator[bool]:
        with self._may(tries, slot, await acquired(slot, 0)) as may:
            yield may

    @contextmanager
    def _may(self, tries: Tries, slot: Slots | asyncio.Semaphore, has_slot: bool) -> Iterator[bool]:
        may = has_slot and hedges_of(self.model).take() and tries.hedge()
        if has_slot and not may:
            slot.release()  # the request that is refused needs none
        try:
            yield may
        finally:
            if may:
                slot.release()

    def _key(self, policy: CallPolicy) -> Hashable:
        # The key holds policy and budget: a caller with more time or budget must not get the
        # failure of a caller with less.
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
        """Return the most tokens that the call may cost, and whether they are estimated.

        The tokens are 0 if no budget limits them.
        """
        account = current_account()
        if account is None or not account.counts_tokens:
            return 0, False
        prompt, estimated = prompt_tokens(self.model, self.messages)
        limits = (self.options.get("max_tokens"), getattr(self.model, "max_tokens", None))
        return prompt + next((limit for limit in limits if isinstance(limit, int)), 0), estimated

    def _prompt(self) -> list[BaseMessage]:
        messages = list(self.messages)
        if self.sample:
            # LangChain's cache keys hold the whole message, and no provider receives this field.
            # So each sample has its own entry in any cache. Sample 0 keeps the plain key.
            messages[-1] = messages[-1].model_copy(
                update={"response_metadata": {"sample": self.sample}}
            )
        return messages


@dataclass(frozen=True)
class RunnableCall(Generic[Input, T]):
    """Call a Runnable once, such as a retriever."""

    runnable: Runnable[Input, T]
    input: Input
    stage: str
    raises: Callable[[Exception], bool] = lambda error: False
    """A function that says whether an exception is raised to the driver and not an outcome."""
    beyond: float = 0.0
    """The seconds that the call may take beyond what its scope has left, at least 0."""

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return the `max_concurrency` of the policy, or of the default policy."""
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
    """Do work in this process that would block an event loop."""

    work: Callable[[], T]
    stage: str

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return the `max_concurrency` of the policy, or of the default policy."""
        return (policy or CallPolicy()).max_concurrency

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T]:
        """Do the work in this thread."""
        started = time.monotonic()
        try:
            value = in_time(self.work, GRACE)
        except Exception as error:
            return Outcome.failed(error, time.monotonic() - started)
        return Outcome(value, usage=_elapsed(started))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T]:
        """Do the work in a thread of the loop's executor."""
        started = time.monotonic()
        try:
            return await ain_time(partial(asyncio.to_thread, self.run, config, policy), GRACE)
        except TimeoutError as error:  # no thread was free in time
            return Outcome.failed(error, time.monotonic() - started)


def _config(config: RunnableConfig, stage: str) -> RunnableConfig:
    tags = dict.fromkeys([*(config.get("tags") or ()), NO_STREAM, JUDGE])
    return {**config, "tags": [*tags], "run_name": stage}


def _joined(outcome: Outcome[T]) -> Outcome[T]:
    """Return the outcome of a request that an identical one answered, which counts the usage."""
    return replace(outcome, usage=Usage(cached=1) if outcome.error is None else Usage())


def _elapsed(started: float) -> Usage:
    return Usage(seconds=time.monotonic() - started)
