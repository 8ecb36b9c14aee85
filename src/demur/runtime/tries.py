"""Follow one request to a model through its attempts, and describe its outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from typing_extensions import Self

from demur.runtime.failures import cause_of, describe, is_control_flow
from demur.runtime.policy import CallPolicy
from demur.runtime.reasoning import begins_with_reasoning, quotable, without_reasoning
from demur.runtime.retry import delay_before_retry, is_refusal
from demur.runtime.scope import Scope, current_scope
from demur.runtime.undetermined import UndeterminedError
from demur.schema import Usage

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Reply:
    """Hold what a chat model replied."""

    text: str
    """The text of the message, without reasoning."""
    truncated: bool = False
    """Whether the reply was cut at the token limit."""
    tokens: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """The tokens, each with the log-probabilities of the likeliest ones in its place; empty if the
    endpoint gives none."""
    reasoned: bool = False
    """Whether the model reasoned before it answered; `tokens` are then not of `text` alone."""

    @property
    def first_token(self) -> Mapping[str, float] | None:
        """Return the log-probabilities of the likeliest first tokens."""
        return self.tokens[0][1] if self.tokens else None


@dataclass(frozen=True)
class Outcome(Generic[T_co]):
    """Describe how a call ended: with a value, or with an error that says why there is none."""

    _value: T_co | None = None
    error: str | None = None
    cause: str | None = None
    """The kind of the error, in words that anyone may see."""
    usage: Usage = field(default_factory=Usage)
    refused: bool = False
    """Whether the model refused what the request held (`is_refusal`)."""

    @classmethod
    def failed(cls, error: BaseException, seconds: float = 0.0) -> Self:
        """Return the outcome of a call that raised `error`."""
        return cls(error=describe(error), cause=cause_of(error), usage=Usage(seconds=seconds))

    @property
    def value(self) -> T_co:
        """Return the value of the call.

        Raises:
            UndeterminedError: The call failed.
        """
        return self.expect()

    def expect(self, failing: str = "") -> T_co:
        """Return the value of the call.

        Raises:
            UndeterminedError: The call failed. The message begins with `failing`, if that is given.
        """
        if self.error is not None:
            raise UndeterminedError(f"{failing}: {self.error}" if failing else self.error)
        return cast(T_co, self._value)  # None may be a value


_NO_SLOT = "all slots for requests to the model were taken until the time was up"


class Tries:
    """Hold the state of one request, and catch the errors of each attempt.

    Enter it around each attempt. It counts attempts, time and costs.
    """

    def __init__(
        self,
        policy: CallPolicy,
        prompt: Sequence[BaseMessage],
        tokens: int,
        estimated: bool = False,
    ) -> None:
        self.policy = policy
        self.prompt = prompt
        self.message: object = None
        self.delay: float | None = None
        self._tries = 0
        self._hedges = self._settled = 0
        self._spent = 0.0
        self._started = 0.0
        self._timeout = 0.0
        self._error: str | None = None
        self._cause: str | None = None
        self._scope = current_scope() or Scope()
        self._account = self._scope.account
        self._reserved, self._estimated = tokens, estimated
        self._refused: str | None = None
        self._is_refusal = False

    def reserve(self, has_slot: bool) -> bool:
        """Reserve the next attempt, and return whether it may be made.

        It may be made if there is a slot and the budget allows another call.
        """
        if has_slot:
            self._refused = self._scope.reserve(self._reserved, self._estimated)
        else:
            self._refused = _NO_SLOT
        return self._refused is None

    def hedge(self) -> bool:
        """Return whether the budget allows a second call beside the first, and count it if so."""
        if self._scope.reserve(self._reserved, self._estimated, needed=False):
            return False
        self._hedges += 1
        return True

    @property
    def left(self) -> float | None:
        """Return the seconds that the guarded call has left for the request; None for no limit."""
        return self._scope.remaining_seconds()

    def __enter__(self) -> float:
        self._tries += 1
        self._started = time.monotonic()
        self._timeout = min(self.policy.timeout, self.policy.deadline - self._spent)
        if (left := self.left) is not None:
            self._timeout = min(self._timeout, left)
        return self._timeout

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self._spent += time.monotonic() - self._started
        self.delay = None
        self._error = None
        self._settle()
        if not isinstance(error, Exception) or is_control_flow(error):
            return False
        self.delay = delay_before_retry(error, self._tries, self._spent, self.policy)
        if self.delay is not None and (left := self.left) is not None and self.delay >= left:
            self.delay = None  # the pause would take all the time that is left
        self._error, self._cause = describe(error), cause_of(error)
        self._is_refusal = is_refusal(error)
        if isinstance(error, (TimeoutError, FutureTimeout, asyncio.TimeoutError)) and not str(
            error
        ):
            self._error = f"no reply within {self._timeout:.3g} s"
        return True

    def wait(self) -> float:
        """Return the seconds before the next attempt, and count them towards the deadline."""
        assert self.delay is not None
        self._spent += self.delay
        return self.delay

    def _settle(self) -> None:
        if self._account is not None:
            single = Usage(calls=1)
            usage = reported_usage(self.message, single) if self.message is not None else single
            self._account.settle(self._reserved, usage)
            for _ in range(self._hedges - self._settled):
                self._account.settle(self._reserved, single)
            self._settled = self._hedges

    def outcome(self) -> Outcome[Reply]:
        """Return how the request ended."""
        usage = Usage(calls=self._tries + self._hedges, seconds=self._spent)
        if self._refused is not None:
            before = f" (after {self._error})" if self._error else ""
            return Outcome(error=f"{self._refused}{before}", cause=self._refused, usage=usage)
        if self._error is not None:
            tries = f" (after {self._tries} tries)" if self._tries > 1 else ""
            why = f"the model call failed{tries}: {self._error}"
            return Outcome(error=why, cause=self._cause, usage=usage, refused=self._is_refusal)
        if not isinstance(self.message, AIMessage):
            kind = type(self.message).__name__
            return Outcome(error=f"the model returned a {kind}, not a message", usage=usage)
        return Outcome(_reply(self.message, self.prompt), usage=reported_usage(self.message, usage))


def reply_in(response: LLMResult) -> BaseMessage | str:
    """Return the first reply of a response: a chat model's message, or a text model's text."""
    replies = (generation for several in response.generations for generation in several)
    first = next(replies, None)
    return first.message if isinstance(first, ChatGeneration) else getattr(first, "text", "")


def reported_usage(message: object, usage: Usage) -> Usage:
    """Return the `usage` of one call with the tokens that the reply reports."""
    reported = getattr(message, "usage_metadata", None) or {}
    if "total_cost" in reported:
        # LangChain marks a message from its cache with a cost of 0.
        return usage.model_copy(update={"calls": usage.calls - 1, "cached": 1})
    return usage.model_copy(
        update={
            "input_tokens": int(reported.get("input_tokens") or 0),
            "output_tokens": int(reported.get("output_tokens") or 0),
        }
    )


def _reply(message: AIMessage, prompt: Sequence[BaseMessage]) -> Reply:
    metadata = message.response_metadata
    reason = metadata.get("finish_reason") or metadata.get("stop_reason")
    truncated = reason in ("length", "max_tokens", "MAX_TOKENS")
    said = str(message.text)
    text = without_reasoning(said)
    if text != said and quotable(prompt):
        text = "" if truncated else without_reasoning(said, quoted=True)
    tokens = tuple(_tokens(metadata.get("logprobs")))
    return Reply(
        text=text,
        truncated=truncated,
        tokens=tokens,
        reasoned=text != said or (tokens != () and begins_with_reasoning(message, tokens[0][0])),
    )


def _tokens(logprobs: object) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the tokens with their alternatives from log-probabilities in OpenAI's format."""
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    for one in content or ():
        likeliest = {one["token"]: float(one["logprob"])}
        for other in one.get("top_logprobs") or ():
            likeliest[other["token"]] = max(
                float(other["logprob"]), likeliest.get(other["token"], -1e9)
            )
        yield one["token"], likeliest
