"""Hold what agents could say at the end of their work, each with the trace of what they did.

A trace has the messages of an agent: its calls of tools, and what came of them. A claim says what
the agent did, rightly or wrongly. A fact says what a tool returned, rightly. The texts are our own
invention. Their authors did not know how demur judges them. `actions.jsonl` has claims of many
kinds about sixty traces. `reports.jsonl` has three kinds of reports that failed in public threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages

from demur_research.texts import FOLDER, rows_of

WRONG_KINDS = ("never", "failed", "pending", "partial", "wrong target", "otherwise")
"""What a wrong claim keeps quiet: the agent never did it, it failed, it has not finished, it was
done for some targets only, for another target, or otherwise than the claim says."""
RIGHT_KINDS = ("done", "told failed", "told pending", "told partial", "told undone")
"""What a right claim tells: that something was done, or why it was not, or not completely."""
_WITHOUT_CALLS = ("never", "told undone")
"""The kinds of claims about a trace without calls."""
REPORT_KINDS = ("short", "other words", "several")
"""What a report is, be it right or wrong: a short one of success ("Done."), one in other words than
the tool's, or one of two or more things."""


@dataclass(frozen=True)
class Said:
    """Hold one sentence that an agent could say at the end of its work."""

    text: str
    holds: bool
    kind: str | None = None
    """What the claim is: one of `WRONG_KINDS`, `RIGHT_KINDS` or `REPORT_KINDS`. None: it is a fact,
    no action."""


@dataclass(frozen=True)
class ActionTrace:
    """Hold what an agent did, and what it could say."""

    id: str
    """The domain and a number, such as "mail-01"."""
    domain: str
    messages: tuple[BaseMessage, ...]
    """The messages up to the agent's answer, which is missing."""
    claims: tuple[Said, ...]
    """What the agent says of its own actions."""
    facts: tuple[Said, ...]
    """What the agent says of the world, which a tool returned. All facts hold."""

    @property
    def number(self) -> int:
        """Return the number in the id."""
        return int(self.id[-2:])

    def __post_init__(self) -> None:
        """Refuse a trace whose fields contradict each other."""
        if not re.fullmatch(rf"{self.domain}-[0-9]{{2}}", self.id):
            raise ValueError(f"{self.id}: expected the domain {self.domain!r} and two digits.")
        of_agent = [one for one in self.messages if isinstance(one, AIMessage)]
        called = [call["id"] for one in of_agent for call in one.tool_calls]
        returned = [one.tool_call_id for one in self.messages if isinstance(one, ToolMessage)]
        if any(len({*ids}) < len(ids) for ids in (called, returned)) or {*returned} - {*called}:
            raise ValueError(f"{self.id}: expected a call for each result, and ids to differ.")
        for one in self.claims:
            kinds: tuple[str, ...] = RIGHT_KINDS if one.holds else WRONG_KINDS
            kinds = kinds if called else tuple(kind for kind in kinds if kind in _WITHOUT_CALLS)
            if one.kind not in (*kinds, *REPORT_KINDS):
                raise ValueError(f"{self.id}: unknown kind {one.kind!r}; use {', '.join(kinds)}.")
        if any(one.kind or not one.holds or not returned for one in self.facts):
            raise ValueError(f"{self.id}: expected facts that hold, by a result, without a kind.")
        every = [one.text for one in (*self.claims, *self.facts)]
        if len({*every}) < len(every):
            raise ValueError(f"{self.id}: says a sentence twice; expected it to stand there once.")


def _read(row: Mapping[str, Any]) -> ActionTrace:
    said = {name: tuple(Said(**one) for one in row[name]) for name in ("claims", "facts")}
    return ActionTrace(**{**row, **said, "messages": tuple(convert_to_messages(row["messages"]))})


@cache
def action_traces() -> tuple[ActionTrace, ...]:
    """Return the traces of `actions.jsonl`, in the order of the file."""
    return tuple(map(_read, rows_of(FOLDER / "actions.jsonl")))


@cache
def report_traces() -> tuple[ActionTrace, ...]:
    """Return the traces of `reports.jsonl`, in the order of the file."""
    return tuple(map(_read, rows_of(FOLDER / "reports.jsonl")))
