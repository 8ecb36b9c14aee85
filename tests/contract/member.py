"""Describe a Runnable for the contract tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable


@dataclass(frozen=True)
class Member:
    """Describe a Runnable, and what is known about its inputs and outputs."""

    name: str
    make: Callable[[], Runnable[Any, Any]]
    give: Callable[[int], Any]
    """A function that gives the input about item `n`."""
    essence: Callable[[Any], Any]
    """A function that gives the part of an output that must be the same each time."""
    good: Callable[[int, Any], bool]
    """A function that says whether an output is right for the input about item `n`."""
    bad_input: Any
    """An input that raises."""
    complaint: str
    """A part of that error's message."""
    asks: bool = True
    """Whether the Runnable asks a model."""
