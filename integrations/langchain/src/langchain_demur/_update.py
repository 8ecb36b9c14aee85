"""What a node of a graph returns: where the answer is in it, and how another takes its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langgraph.types import Command

from demur import DemurError
from demur.guard.messages import last_written
from langchain_demur._messages import calls_tools, without_text
from langchain_demur._run import Call, NoAnswerYet, kind_of, view_of

MESSAGES = "messages"
_STRUCTURED = "structured_response"
_ANSWERS = ("answer", "output", "result", "response", "generation")


@dataclass(frozen=True)
class Update:
    """A node's update in which there is an answer."""

    output: Any
    """What the node returned: the update, or a `Command` with it."""
    values: Mapping[str, Any]
    """The update, without what must not leave."""
    answer: AIMessage | str

    def with_answer(self, answer: AIMessage | str) -> Any:
        """What the node is to return, with another answer wherever the old one stands."""
        values = {**self.values}
        if answer is not self.answer:
            old = _text(self.answer)
            values = {key: _swapped(value, old, answer) for key, value in values.items()}
        return _like(self.output, values)


def read_update(output: Any, key: str | None, call: Call, told: Collection[str]) -> Update:
    """Find the answer in what a node returned.

    Args:
        output: What it returned.
        key: The key of the answer; None to look for it.
        call: The guarded call.
        told: The ids of those that were added to tell the node what was wrong.

    Raises:
        NoAnswerYet: The model calls tools.
        DemurError: There is no answer in it; the message names what was seen.
    """
    values = output.update if isinstance(output, Command) else output
    if not isinstance(values, Mapping):
        raise DemurError(
            f"a guarded node has to return a mapping as its update, got {kind_of(values)}"
        )
    if values.get(_STRUCTURED) is not None:
        raise DemurError(
            f"a guarded node cannot judge what is under {_STRUCTURED!r}: give the agent itself "
            "HallucinationMiddleware"
        )
    values = dict(values)
    last: AIMessage | None = None
    if values.get(MESSAGES):
        known = [(one.id, one.text) for one in view_of(call.state).get(MESSAGES, ())]
        messages = [one for one in _messages(values[MESSAGES]) if one.id not in told]
        written = [one for one in messages if (one.id, one.text) not in known]
        last = last_written(written)
        # Of the messages that the node wrote, only the last is judged.
        messages = [
            without_text(one)
            if isinstance(one, AIMessage) and one is not last and one in written
            else one
            for one in messages
        ]
        if key is None and last is not None and calls_tools(last):
            messages = [call.step(without_text(one)) if one is last else one for one in messages]
            raise NoAnswerYet(_like(output, {**values, MESSAGES: messages}))
        values[MESSAGES] = messages
    answer = last if key is None and last is not None else _under_a_key(values, key)
    call.given += 1
    return Update(output, values, answer)


def _under_a_key(values: Mapping[str, Any], key: str | None) -> AIMessage | str:
    for one in _ANSWERS if key is None else (key,):
        if isinstance(values.get(one), (AIMessage, str)):
            found: AIMessage | str = values[one]
            return found
    expected = f"a text under {key!r}" if key else f"an AIMessage, or a text under {_ANSWERS}"
    raise DemurError(
        f"no answer can be found in the update of a guarded node, {kind_of(values)}: expected "
        f"{expected}. Name its key with guarded_node(..., answer='key')"
    )


def _messages(value: Any) -> list[BaseMessage]:
    return convert_to_messages(value if isinstance(value, list) else [value])


def _like(output: Any, values: dict[str, Any]) -> Any:
    return replace(output, update=values) if isinstance(output, Command) else values


def _swapped(value: Any, old: str, answer: AIMessage | str) -> Any:
    if isinstance(value, str):
        return _text(answer) if value == old else value
    if isinstance(value, list):
        return [_swapped(one, old, answer) for one in value]
    if not isinstance(value, AIMessage) or _text(value) != old:
        return value
    if isinstance(answer, AIMessage) and answer.id == value.id:
        return answer
    return AIMessage(_text(answer), id=value.id, name=value.name)


def _text(answer: AIMessage | str) -> str:
    return answer if isinstance(answer, str) else str(answer.text)
