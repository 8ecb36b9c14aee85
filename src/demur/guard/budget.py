"""Define the budget of a guarded call."""

from __future__ import annotations

from dataclasses import dataclass

from demur.runtime import Account


@dataclass(frozen=True)
class Budget:
    """Hold the limits that the chain, the judges and the repairs of one guarded call share.

    A call to a model that judges or repairs is reserved beforehand, and is not made if it would
    pass a limit. A run of the chain is not reserved: its usage is counted after it has ended, and
    it is never stopped. Tokens of a prompt are estimated until the endpoint reports them. Tokens of
    a reply are reserved beforehand only if `max_tokens` bounds them.

    Raises:
        ValueError: A limit is out of its range.
    """

    attempts: int = 3
    """The number of answers in all, the first included; at least 1."""
    model_calls: int | None = None
    """The number of requests to models, retries included; at least 1, or None for no limit."""
    tokens: int | None = None
    """The tokens of prompts and replies together; at least 1, or None for no limit."""
    seconds: float | None = None
    """The time of the whole call, in seconds; above 0, or None for no limit. A model call that runs
    gets the time that is left."""
    judge_seconds: float | None = None
    """The time in seconds that all evaluators together, running side by side, may take for one
    answer, or for one sentence of a stream; above 0, or None for no limit of their own. An
    evaluator that takes longer could not decide, and `on_error` says what to do with the answer."""

    def __post_init__(self) -> None:
        for name in ("attempts", "model_calls", "tokens"):
            value = getattr(self, name)
            if value is None and name != "attempts":
                continue
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("seconds", "judge_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value!r}")

    def open(self) -> Account | None:
        """Return an account for a call that starts now, or None if only attempts are limited."""
        if self.model_calls is None and self.tokens is None and self.seconds is None:
            return None
        return Account(self.model_calls, self.tokens, self.seconds)
