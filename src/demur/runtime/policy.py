"""Define `CallPolicy`: the retries, the time limits and the concurrency of model calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CallPolicy:
    """Set the retries, the time limits and the concurrency of model calls.

    Raises:
        ValueError: A field is out of its range.
    """

    attempts: int = 4
    """The most attempts at a request, the first one included; at least 1."""
    timeout: float = 120.0
    """The seconds that one attempt may take; greater than 0."""
    deadline: float = 300.0
    """The seconds that all attempts at a request, with the pauses, may take; greater than 0.

    Waiting for a free slot does not count.
    """
    first_delay: float = 0.5
    """The seconds before the first retry, at least 0; doubles with each retry, with jitter."""
    max_delay: float = 20.0
    """The longest pause in seconds, at least 0, unless the server asks for a longer one."""
    max_concurrency: int = 64
    """The number of requests to one model at the same time; at least 1.

    The limit holds for each event loop, and for all threads together.
    """
    hedge_after: float | None = None
    """The seconds after which a request without a reply is made a second time; greater than 0.

    None: never. The first reply is taken, and both requests count as calls of one attempt. At most
    one request in ten to a model is made twice, with ten more at first, and only while a slot is
    free. Requests for samples are never made twice: the shorter reply would come first.
    """

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts must be at least 1, got {self.attempts}")
        for name in ("timeout", "deadline"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("first_delay", "max_delay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.max_concurrency < 1:
            raise ValueError(f"max_concurrency must be at least 1, got {self.max_concurrency}")
        if self.hedge_after is not None and not self.hedge_after > 0:
            raise ValueError(f"hedge_after must be positive, got {self.hedge_after}")


def policy_for(model: object, policy: CallPolicy | None) -> CallPolicy:
    """Return the given policy, else the model's own (`call_policy`), else the default."""
    if policy is not None:
        return policy
    own = getattr(model, "call_policy", None)
    return own if isinstance(own, CallPolicy) else CallPolicy()
