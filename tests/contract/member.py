"""One that has to keep to the contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable


@dataclass(frozen=True)
class Member:
    """A Runnable, and what is known of its inputs and outputs."""

    name: str
    make: Callable[[], Runnable[Any, Any]]
    give: Callable[[int], Any]
    """The input about item `n`."""
    essence: Callable[[Any], Any]
    """What of an output must be the same each time."""
    good: Callable[[int, Any], bool]
    """Whether an output is what the input about item `n` has to give."""
    bad_input: Any
    """An input that raises."""
    complaint: str
    """What the error says of it."""
    asks: bool = True
    """Whether it asks a model."""
    tasks: int = 100
    """How many tasks call it at once. `FEWER` where another one of its class has 100."""


FEWER = 30
