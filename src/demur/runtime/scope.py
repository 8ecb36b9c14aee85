"""What one guarded call shares with all that it sets off: its means, and what it knows already.

A call that judges or repairs may be deep inside an evaluator that knows nothing of a guard; so the
scope travels in a context variable, which threads of ours and tasks take with them.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from demur._forks import lock
from demur.schema import Usage

Limit = Literal["model_calls", "tokens", "seconds"]
_TIME_IS_UP = "the time for judging is up"


class Account:
    """What may be spent, and what was. A call is reserved before it is made, and settled after.

    Args:
        model_calls: Requests to models, retries included; None for no limit.
        tokens: Tokens of prompts and replies; None for no limit.
        seconds: Time from now on; None for no limit.
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
        """How the tokens of a call that was refused were counted."""
        self._exhausted: Limit | None = None
        self._lock = lock()

    @property
    def counts_tokens(self) -> bool:
        """Whether `reserve` needs to be told of tokens."""
        return self._tokens is not None

    @property
    def exhausted(self) -> Limit | None:
        """The limit that refused something, or that was passed."""
        with self._lock:
            return self._exhausted or self._passed()

    def remaining_seconds(self) -> float | None:
        """Until the time is up, at least 0; None for no limit."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def reserve(self, tokens: int, estimated: bool = False, needed: bool = True) -> str | None:
        """Take a call and its tokens out of what is left.

        Args:
            tokens: What the call may cost.
            estimated: Whether no tokenizer counted them.
            needed: Whether the limit counts as reached if it refuses the call.

        Returns:
            None, or why that cannot be: the limit that it would pass.
        """
        with self._lock:
            limit: Limit | None = None
            if self._until is not None and time.monotonic() >= self._until:
                limit = "seconds"
            elif self._model_calls is not None and self._calls_spent >= self._model_calls:
                limit = "model_calls"
            elif self._tokens is not None and self._tokens_spent + tokens > self._tokens:
                limit = "tokens"
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
        """Put what a reserved call did cost in the place of what was reserved for it."""
        spent = usage.input_tokens + usage.output_tokens
        with self._lock:
            self._calls_spent -= 1 - min(usage.calls, 1)  # a cache's reply is no call
            # An endpoint that reports nothing has still read the prompt.
            self._tokens_spent += (spent or (reserved if usage.calls else 0)) - reserved

    def settle_all(self, usage: Usage) -> None:
        """Count what was spent in all, as it is known now, by calls that reserve nothing too."""
        with self._lock:
            self._calls_spent = max(self._calls_spent, usage.calls)
            spent = usage.input_tokens + usage.output_tokens
            self._tokens_spent = max(self._tokens_spent, spent)

    def describe(self, limit: Limit) -> str:
        """A limit in words."""
        if limit == "seconds":
            return f"the budget of {self._seconds:g} seconds is used up"
        if limit == "model_calls":
            return f"the budget of {self._model_calls} model calls is used up"
        how = "" if self._counted is None else f", the next prompt {self._counted}"
        return f"the budget of {self._tokens} tokens is used up{how}"

    def _passed(self) -> Limit | None:
        if self._until is not None and time.monotonic() >= self._until:
            return "seconds"
        if self._model_calls is not None and self._calls_spent >= self._model_calls:
            return "model_calls"
        if self._tokens is not None and self._tokens_spent >= self._tokens:
            return "tokens"
        return None


@dataclass(frozen=True)
class Scope:
    """Of one guarded call."""

    account: Account | None = None
    """None: nothing is limited."""
    known: dict[Hashable, Any] = field(default_factory=dict)
    """What was found out in this call, for whoever would ask a model for it again. Keys begin with
    a word that says whose they are, and what is kept is never taken back."""
    until: float | None = None
    """When what runs in it is to be over, by the monotonic clock; None: no sooner than the account
    says."""

    def ending_within(self, seconds: float | None) -> Scope:
        """The same scope for what may take so many seconds from now on; None: as long as before."""
        if seconds is None:
            return self
        until = time.monotonic() + seconds
        return replace(self, until=until if self.until is None else min(until, self.until))

    def reserve(self, tokens: int, estimated: bool, needed: bool = True) -> str | None:
        """As `Account.reserve`, where there is an account; and why not when the time is up."""
        if self.until is not None and time.monotonic() >= self.until:
            return _TIME_IS_UP
        return None if self.account is None else self.account.reserve(tokens, estimated, needed)

    def remaining_seconds(self) -> float | None:
        """Until what runs in it is to be over, at least 0; None for no limit."""
        own = None if self.until is None else max(0.0, self.until - time.monotonic())
        of_account = None if self.account is None else self.account.remaining_seconds()
        return min((left for left in (own, of_account) if left is not None), default=None)


_scope: ContextVar[Scope | None] = ContextVar("demur_scope", default=None)


def current_scope() -> Scope | None:
    """That of the guarded call in which this runs, if it does."""
    return _scope.get()


def remaining_seconds() -> float | None:
    """How long what runs here may still take, at least 0; None where nothing limits it."""
    scope = current_scope()
    return None if scope is None else scope.remaining_seconds()


@contextmanager
def within_scope(scope: Scope | None) -> Iterator[None]:
    """Have the block, and what it sets off, run in a scope; None: in none."""
    token = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(token)
