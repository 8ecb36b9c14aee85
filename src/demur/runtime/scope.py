"""Share the budget and the known results of one guarded call with all calls inside it.

A call that judges or repairs may be deep inside an evaluator that knows nothing of a guard. So the
scope travels in a context variable, which demur's threads and all tasks inherit.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from demur._system import lock
from demur.schema import Usage

Limit = Literal["model_calls", "tokens", "seconds"]
_TIME_IS_UP = "the time for judging is up"


class Account:
    """Keep track of a budget: a call is reserved before it is made, and settled afterwards.

    Args:
        model_calls: The limit of requests to models, with retries; None for no limit.
        tokens: The limit of tokens in prompts and replies; None for no limit.
        seconds: The limit of time from now on; None for no limit.
    """

    def __init__(
        self,
        model_calls: int | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
    ) -> None:
        self._model_calls = model_calls
        self._tokens = tokens
        self._seconds = seconds
        self._until = None if seconds is None else time.monotonic() + seconds
        self._calls_spent = 0
        self._tokens_spent = 0
        self._counted: str | None = None
        """How the tokens of a refused call were counted, in words."""
        self._exhausted: Limit | None = None
        self._lock = lock()

    @property
    def counts_tokens(self) -> bool:
        """Return whether tokens are limited, so that `reserve` needs their number."""
        return self._tokens is not None

    @property
    def exhausted(self) -> Limit | None:
        """Return the limit that refused a call or that is reached, or None."""
        with self._lock:
            return self._exhausted or self._passed_by(1)

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the time is up, at least 0; None for no limit."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def reserve(self, tokens: int, estimated: bool = False, needed: bool = True) -> str | None:
        """Reserve a call and its tokens in the budget, or return why that is refused.

        Args:
            tokens: The most tokens that the call may cost.
            estimated: Whether the tokens are an estimate, and not counted by a tokenizer.
            needed: Whether the limit counts as reached if it refuses the call.

        Returns:
            None, or the reason for a refusal: the limit that the call would pass.
        """
        with self._lock:
            limit = self._passed_by(tokens)
            if limit is None:
                self._calls_spent += 1
                self._tokens_spent += tokens
                return None
            if not needed:
                return self.describe(limit)
            if limit == "tokens":
                self._counted = "estimated" if estimated else "counted by its tokenizer"
            self._exhausted = self._exhausted or limit
            return self.describe(limit)

    def settle(self, reserved: int, usage: Usage) -> None:
        """Replace what was reserved for a call with what the call cost."""
        spent = usage.input_tokens + usage.output_tokens
        with self._lock:
            self._calls_spent -= 1 - min(usage.calls, 1)  # a reply from a cache is not a call
            # An endpoint that reports no tokens has still read the prompt.
            self._tokens_spent += (spent or (reserved if usage.calls else 0)) - reserved

    def settle_all(self, usage: Usage) -> None:
        """Count all that is known to be spent so far, also by calls that reserve nothing."""
        with self._lock:
            self._calls_spent = max(self._calls_spent, usage.calls)
            spent = usage.input_tokens + usage.output_tokens
            self._tokens_spent = max(self._tokens_spent, spent)

    def describe(self, limit: Limit) -> str:
        """Return a phrase that says which budget is used up."""
        if limit == "seconds":
            return f"the budget of {self._seconds:g} seconds is used up"
        if limit == "model_calls":
            return f"the budget of {self._model_calls} model calls is used up"
        how = "" if self._counted is None else f", the next prompt {self._counted}"
        return f"the budget of {self._tokens} tokens is used up{how}"

    def _passed_by(self, tokens: int) -> Limit | None:
        """Return the limit that a call of so many tokens would pass, or None."""
        if self._until is not None and time.monotonic() >= self._until:
            return "seconds"
        if self._model_calls is not None and self._calls_spent >= self._model_calls:
            return "model_calls"
        if self._tokens is not None and self._tokens_spent + tokens > self._tokens:
            return "tokens"
        return None


@dataclass(frozen=True)
class Scope:
    """Hold the state that one guarded call shares with all calls inside it."""

    account: Account | None = None
    """The account of the call's budget; None if there is no limit."""
    known: dict[Hashable, Any] = field(default_factory=dict)
    """The results that are known in this call, so that no model is asked for them again.

    Keys begin with a word that says whose they are. Entries are never removed.
    """
    until: float | None = None
    """The time on the monotonic clock at which work in the scope must end.

    None: only the account limits the time.
    """

    def ending_within(self, seconds: float | None) -> Scope:
        """Return this scope with an end within `seconds` from now on; None sets no new limit."""
        if seconds is None:
            return self
        until = time.monotonic() + seconds
        return replace(self, until=until if self.until is None else min(until, self.until))

    def reserve(self, tokens: int, estimated: bool, needed: bool = True) -> str | None:
        """Reserve a call in the account, if there is one, and refuse it when the time is up.

        Arguments and result are those of `Account.reserve`.
        """
        if self.until is not None and time.monotonic() >= self.until:
            return _TIME_IS_UP
        return None if self.account is None else self.account.reserve(tokens, estimated, needed)

    def remaining_seconds(self) -> float | None:
        """Return the seconds until work in the scope must end, at least 0; None for no limit."""
        own = None if self.until is None else max(0.0, self.until - time.monotonic())
        of_account = None if self.account is None else self.account.remaining_seconds()
        return min((left for left in (own, of_account) if left is not None), default=None)


_scope: ContextVar[Scope | None] = ContextVar("demur_scope", default=None)


def current_scope() -> Scope | None:
    """Return the scope of the guarded call in which this code runs, or None."""
    return _scope.get()


def current_account() -> Account | None:
    """Return the account of the guarded call in which this code runs, or None if there is none."""
    scope = current_scope()
    return None if scope is None else scope.account


def remaining_seconds() -> float | None:
    """Return the seconds that this code may still take, at least 0; None for no limit."""
    scope = current_scope()
    return None if scope is None else scope.remaining_seconds()


@contextmanager
def within_scope(scope: Scope | None) -> Iterator[None]:
    """Run the block, and all work that it starts, in a scope; None: in no scope."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
