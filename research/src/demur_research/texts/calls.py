"""Hold conversations that end in an agent's call of a tool, some with a value that nobody gave.

The texts are our own invention. Numbers below 400 are by the author of the rules, and those above
by two authors who did not know them. The part that is held out is of the second of these, and the
rules were not changed after it was judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from demur_research.texts import rows_of

RIGHT_KINDS = (
    *("as given", "in nested JSON", "other writing", "over several messages", "composed"),
    *("worked out", "relative date", "free"),
)
"""Where the values of a right call come from. "free": the model may choose them."""
WRONG_KINDS = (
    *("invented", "swapped digits", "guessed", "placeholder", "wrong amount", "wrong date"),
    *("wrong name", "only echoed"),
)
"""What is wrong with the value that nobody gave."""


@dataclass(frozen=True)
class ToolCallCase:
    """Hold a conversation, and the call that comes next."""

    id: str
    """The domain and a number, such as "shop-01"."""
    domain: str
    kind: str
    """One of `RIGHT_KINDS` or `WRONG_KINDS`."""
    today: str
    tool: str
    schema: Mapping[str, Any]
    messages: tuple[Mapping[str, Any], ...]
    args: Mapping[str, Any]
    invented: tuple[str, ...]
    """The paths of the arguments that nobody gave; empty for a right call."""
    held_out: bool

    def __post_init__(self) -> None:
        """Refuse a case whose fields contradict each other."""
        if self.kind not in (WRONG_KINDS if self.invented else RIGHT_KINDS):
            raise ValueError(f"{self.id}: {self.kind!r} is no kind of such a call.")
        if self.messages[-1]["type"] not in ("human", "tool"):
            raise ValueError(f"{self.id}: expected to end with the user or a tool's result.")


@cache
def call_cases() -> tuple[ToolCallCase, ...]:
    """Return all cases, in the order of the file."""
    rows = rows_of(Path(__file__).with_suffix(".jsonl"))
    listed = ({**row, "messages": tuple(row["messages"])} for row in rows)
    return tuple(ToolCallCase(**{**row, "invented": tuple(row["invented"])}) for row in listed)
