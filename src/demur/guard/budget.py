"""What one guarded call may spend."""

from __future__ import annotations

from dataclasses import dataclass

from demur.runtime import Account


@dataclass(frozen=True)
class Budget:
    """Limits shared by all that one guarded call does: the chain, the judges, the repairs.

    A call that judges or repairs is reserved before it is made, and not made if it would pass a
    limit. A run of the chain is not: what it spent is counted when it is over, and it is never
    stopped. Tokens of prompts are estimated until the endpoint has reported them; those of a reply
    count beforehand where `max_tokens` bounds it.

    Raises:
        ValueError: A limit is out of its range.
    """

    attempts: int = 3
    """Answers in all, the first included; at least 1."""
    model_calls: int | None = None
    """Requests to models, retries included; at least 1, None for no limit."""
    tokens: int | None = None
    """Of prompts and replies together; at least 1, None for no limit."""
    seconds: float | None = None
    """Time that may go by; > 0, None for no limit. A call under way gets what is left of it."""

    def __post_init__(self) -> None:
        for name in ("attempts", "model_calls", "tokens"):
            value = getattr(self, name)
            if value is None and name != "attempts":
                continue
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"seconds must be positive, got {self.seconds!r}")

    def open(self) -> Account | None:
        """An account for one call, from now on; None if only the attempts are limited."""
        if self.model_calls is None and self.tokens is None and self.seconds is None:
            return None
        return Account(self.model_calls, self.tokens, self.seconds)
