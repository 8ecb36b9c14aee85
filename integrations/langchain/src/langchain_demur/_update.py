"""Find the answer in what a graph's node returns, and put another answer in its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langgraph.types import Command

from demur import DemurError
from demur.shapes import kind_of, last_written
from langchain_demur._clear import CLEARED, sent_on, swapped, text_of
from langchain_demur._messages import calls_tools, only_text, without_text
from langchain_demur._run import MESSAGES, Call, NoAnswerYet, is_own, view_of

_STRUCTURED = "structured_response"
_ANSWERS = ("answer", "output", "result", "response", "generation")


@dataclass(frozen=True)
class Update:
    """Represent a node's update that has an answer."""

    output: Any
    """What the node returned: the update, or a `Command` with the update."""
    values: Mapping[str, Any]
    """The update, without what must not leave."""
    answer: AIMessage | str
    state: Mapping[str, Any]
    """The state before the node ran, which the client may have seen already."""

    def with_answer(self, answer: AIMessage | str) -> Any:
        """Return the node's output with another answer in every place of the old one.

        Raises:
            DemurError: The old answer cannot be taken out of a value.
        """
        if is_own(answer, self.answer):
            return _like(self.output, self._with(answer))
        return _cleared(self.output, self.values, self.state, text_of(self.answer), answer)

    def _with(self, answer: AIMessage | str) -> dict[str, Any]:
        """Return the update with the same answer, which now says what the guard did."""

        def swapped_in(value: Any) -> Any:
            if isinstance(value, list):
                return [answer if one is self.answer else one for one in value]
            return answer if value is self.answer else value

        return {key: swapped_in(value) for key, value in self.values.items()}


def read_update(output: Any, key: str | None, call: Call, told: Collection[str]) -> Update:
    """Find the answer in what a node returned.

    Args:
        output: What the node returned.
        key: The key of the answer. None: the answer is looked for.
        call: The guarded call.
        told: The ids of the messages that were added to tell the node what was wrong.

    Raises:
        NoAnswerYet: The model calls tools.
        DemurError: The output has no answer; the message says what it has.
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
    state = view_of(call.state)
    last: AIMessage | None = None
    if values.get(MESSAGES):
        known = [(one.id, one.text) for one in state.get(MESSAGES, ())]
        messages = [message for message in _messages(values[MESSAGES]) if message.id not in told]
        written = [message for message in messages if (message.id, message.text) not in known]
        last = last_written(written)
        # Only the last message that the node wrote is judged, so the others lose their text.
        messages = [
            without_text(message)
            if isinstance(message, AIMessage) and message is not last and message in written
            else message
            for message in messages
        ]
        if key is None and last is not None and calls_tools(last):
            messages = [
                call.step(without_text(message)) if message is last else message
                for message in messages
            ]
            update = {**values, MESSAGES: messages}
            raise NoAnswerYet(_cleared(output, update, state, text_of(last), None))
        if last is not None:
            kept = without_text(last) if calls_tools(last) else only_text(last)
            messages = [kept if message is last else message for message in messages]
            last = kept
        values[MESSAGES] = messages
    answer = last if key is None and last is not None else _under_a_key(values, key)
    return Update(output, values, answer, state)


def _under_a_key(values: Mapping[str, Any], key: str | None) -> AIMessage | str:
    for one in _ANSWERS if key is None else (key,):
        if isinstance(values.get(one), (AIMessage, str)):
            message: AIMessage | str = values[one]
            return message
    expected = f"a text under {key!r}" if key else f"an AIMessage, or a text under {_ANSWERS}"
    raise DemurError(
        f"no answer can be found in the update of a guarded node, {kind_of(values)}: expected "
        f"{expected}. Name its key with guarded_node(..., answer='key')"
    )


def _messages(value: Any) -> list[BaseMessage]:
    return convert_to_messages(value if isinstance(value, list) else [value])


def _like(output: Any, values: dict[str, Any]) -> Any:
    return replace(output, update=values) if isinstance(output, Command) else values


def _cleared(
    output: Any,
    values: Mapping[str, Any],
    state: Mapping[str, Any],
    old: str,
    answer: AIMessage | str | None,
) -> Any:
    """Return the output with the text `old` taken out of its update, or replaced by `answer`.

    Values that the state had before are left as they are.
    """
    known = {one.id for one in state.get(MESSAGES, ())}
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if key == MESSAGES and value:
            kept[key] = [one if one.id in known else swapped(one, old, answer) for one in value]
        elif value is state.get(key):
            kept[key] = value
        elif (clean := swapped(value, old, answer)) is not CLEARED:
            kept[key] = clean
    changed = _like(output, kept)
    if isinstance(changed, Command):
        changed = replace(changed, goto=sent_on(changed.goto, old, answer))
    return changed
