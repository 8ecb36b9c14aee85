"""Read messages in their forms: short, as they dump themselves, and as OpenAI and Anthropic do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.messages.tool import tool_call
from pydantic import TypeAdapter

_DUMPED: TypeAdapter[BaseMessage] = TypeAdapter(AnyMessage)
_CALL_BLOCKS = ("tool_use", "tool_call", "function_call")
_SERVER_BLOCKS = ("server_tool_use", "mcp_tool_use")


def as_messages(value: Sequence[Any]) -> list[BaseMessage]:
    """Return the messages among some values.

    Messages in short form, or as a message dumps itself, are converted, but only if every value is
    a message. Calls and results in blocks of the content, as Anthropic has them, become
    `tool_calls` and messages of their own.
    """
    if not all(map(_is_message, value)):
        value = [message for message in value if isinstance(message, BaseMessage)]
    try:
        given = convert_to_messages([*map(_complete, value)])
        return [part for message in given for part in in_parts(message)]
    # Values of something else.
    except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError):
        return []


def _complete(value: Any) -> Any:
    """Return a message with what its form may leave out, and as a message if it is a dump."""
    if _is_dumped(value):
        set_ = {key: held for key, held in value.items() if held is not None}
        return _DUMPED.validate_python({"content": "", **set_})
    if not isinstance(value, Mapping) or not value.get("tool_calls"):
        return value
    calls = []
    for call in value["tool_calls"]:
        if of_openai := call.get("function"):  # no arguments may be an empty text
            call = {**call, "function": {**of_openai, "arguments": of_openai["arguments"] or "{}"}}
        calls.append(call)
    return {"content": None, **value, "tool_calls": calls}


def in_parts(message: BaseMessage) -> list[BaseMessage]:
    """Return a message with the calls of its blocks as `tool_calls`, and their results apart."""
    blocks = message.content if isinstance(message.content, list) else []
    by_kind = [(one.get("type"), one) for one in blocks if isinstance(one, dict)]
    if isinstance(message, AIMessage):
        if any(kind in _SERVER_BLOCKS for kind, _ in by_kind):  # LangChain reads them by this name
            made_by = {"model_provider": "anthropic", **message.response_metadata}
            message = message.model_copy(update={"response_metadata": made_by})
        known = [str(call["id"]) for call in (*message.tool_calls, *message.invalid_tool_calls)]
        calls = [_call(one) for kind, one in by_kind if kind in _CALL_BLOCKS]
        if further := [call for call in calls if call["id"] not in known]:
            return [message.model_copy(update={"tool_calls": [*message.tool_calls, *further]})]
    results = [one for kind, one in by_kind if kind == "tool_result"]
    if not results or not isinstance(message, HumanMessage):
        return [message]
    said = [one for one in blocks if one not in results]
    return [
        *map(_result, results),
        *([message.model_copy(update={"content": said})] if said else ()),
    ]


def _call(block: Mapping[str, Any]) -> ToolCall:
    args: Any = block.get("input") or block.get("args") or block.get("arguments") or {}
    id_ = str(block.get("call_id") or block.get("id"))
    name = str(block.get("name") or "a tool")
    return tool_call(name=name, args=args if isinstance(args, dict) else {"": args}, id=id_)


def _result(block: Mapping[str, Any]) -> ToolMessage:
    status = "error" if block.get("is_error") else "success"
    id_ = str(block.get("tool_use_id"))
    return ToolMessage(block.get("content") or "", tool_call_id=id_, status=status)


def _is_message(value: Any) -> bool:
    short = isinstance(value, tuple) or (isinstance(value, Mapping) and "role" in value)
    return short or isinstance(value, BaseMessage) or _is_dumped(value)


def _is_dumped(value: Any) -> bool:
    keys = value.keys() if isinstance(value, Mapping) else ()
    return "type" in keys and "content" in keys and "role" not in keys
