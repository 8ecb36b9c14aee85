"""Find the question and the contexts in a chain's input and output."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.load.serializable import Serializable
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
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel, TypeAdapter, ValidationError

from demur.errors import DemurError
from demur.schema import Sample

Reader = str | Callable[[Any], Any]
"""The way to find something: a key, or a function."""
ContextsReader = Reader | Callable[[Any, Any], Any]
"""The way to find contexts: a key, or a function of the output, or of the input and the output."""

QUESTION_KEYS = ("input", "question", "query")
CONTEXT_KEYS = ("context", "contexts", "source_documents", "documents")
_DUMPED: TypeAdapter[BaseMessage] = TypeAdapter(AnyMessage)
_CALL_BLOCKS = ("tool_use", "tool_call", "function_call")
_SERVER_BLOCKS = ("server_tool_use", "mcp_tool_use")


class Own(str):
    """Represent a key that a demur integration puts beside an answer; its value always stays."""

    __slots__ = ()


CALLS = Own("demur:calls")
"""The key of an output under which an integration puts the calls of an agent, as documents."""


def find_question(input: Any, reader: Reader | None = None) -> str | None:
    """Return the question in a chain's input, or None if there is none.

    The question is a string, a message, or the value under one of `QUESTION_KEYS` in a mapping, a
    pydantic model or a dataclass. In a list of messages, or under `messages`, it is what the user
    said last. Messages may be in short form, `("user", "...")`, or as they dump themselves.

    Raises:
        DemurError: `reader` was given, and the value that it finds is not a text.
    """
    if reader is not None:
        value = read(reader, input, "question")
        question = value if value is None else _last_text(value)
        if value is not None and question is None:
            raise DemurError(f"question= found {kind_of(value)}, expected a string or a message")
        return question
    input = as_fields(input)
    if isinstance(input, Mapping):
        values = [input[key] for key in (*QUESTION_KEYS, "messages") if key in input]
    else:
        values = [input]
    return next((text for text in map(_last_text, values) if text), None)


def find_contexts(
    input: Any, output: Any, captured: Sequence[Document], reader: ContextsReader | None = None
) -> tuple[Document, ...]:
    """Return the documents from which the chain gave its answer.

    They come from the first of these places that has any: one of `CONTEXT_KEYS` of the output, the
    chain's own retrievers (`captured`), or one of `CONTEXT_KEYS` of the input.

    With a `reader`, they come from it alone. A key is looked for in the output, then in the input.
    A function gets the output. If it has two required parameters, it gets the input and the output.

    The calls of an agent (`CALLS`) follow them in any case.

    Raises:
        DemurError: `reader` was given, and the value that it finds is not documents.
    """
    calls: Sequence[Document] = output.get(CALLS, ()) if isinstance(output, Mapping) else ()
    if reader is not None:
        value = _read_contexts(reader, input, output)
        documents = as_documents(value)
        if documents is None:
            raise DemurError(
                f"contexts= found {kind_of(value)}, expected documents or strings (a list of them)"
            )
        return (*documents, *calls)
    found = under_context_keys(output) or tuple(captured) or under_context_keys(input)
    return (*found, *calls)


def _read_contexts(reader: ContextsReader, input: Any, output: Any) -> Any:
    if callable(reader):
        given = (input, output) if _takes_two(reader) else (output,)
        return reader(*given)
    held = isinstance(output, Mapping) and reader in output
    return read(reader, output if held else input, "contexts")


def _takes_two(function: Callable[..., Any]) -> bool:
    """Return whether a function requires two arguments; False if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) == 2


def with_found(output: Any, found: Sequence[Document], keys: Collection[str]) -> Any:
    """Return an output whose documents include those that were found.

    Args:
        output: The chain's output. A key without documents does not change.
        found: The documents that the answer also rests on.
        keys: The keys of a mapping that may hold documents. A list of texts stays a list of texts.
            A single text is followed by the further texts.
    """
    if not isinstance(output, MutableMapping):
        return output
    changed = copy.copy(output)
    for key in keys & output.keys():
        if held := as_documents(output[key]):
            changed[key] = _in_form(output[key], distinct([*held, *found]))
    return changed


def _in_form(value: Any, documents: Sequence[Document]) -> Any:
    texts = [document.page_content for document in documents]
    if isinstance(value, str):
        return "\n\n".join(texts)
    entries = texts if isinstance(value, list | tuple) and isinstance(value[0], str) else documents
    return tuple(entries) if isinstance(value, tuple) else list(entries)


def text_of(value: Any) -> str | None:
    """Return the text of a string or a message, or None for anything else."""
    if isinstance(value, str):
        return value
    return str(value.text) if isinstance(value, BaseMessage) else None


def _last_text(value: Any) -> str | None:
    """Return the text of a string or a message; of several messages, the user's last one."""
    if isinstance(value, PromptValue):
        value = value.to_messages()
    if isinstance(value, Sequence) and not isinstance(value, str):
        sent = [m for m in as_messages(value) if m.type == "human"]
        value = sent[-1] if sent else None
    return text_of(value)


def prompt_messages(prompt: Any) -> list[BaseMessage]:
    """Return a prompt, in any form that LangChain's chat models take, as messages.

    Raises:
        DemurError: The value is not a prompt.
    """
    if isinstance(prompt, PromptValue):
        return prompt.to_messages()
    if isinstance(prompt, str) and prompt:
        return [HumanMessage(prompt)]
    messages = as_messages(prompt) if isinstance(prompt, Sequence) and prompt else []
    if not messages:
        raise DemurError(f"expected a prompt, which is a text or messages, got {kind_of(prompt)}")
    return messages


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


def under_context_keys(value: Any) -> tuple[Document, ...]:
    """Return the documents under the first of `CONTEXT_KEYS` that holds any."""
    if not isinstance(value, Mapping):
        return ()
    candidates = (as_documents(value[key]) for key in CONTEXT_KEYS if key in value)
    return next((documents for documents in candidates if documents), ())


def as_documents(value: Any) -> tuple[Document, ...] | None:
    """Return documents or strings as documents, or None for anything else.

    A single document or string, or a list of them, is accepted.
    """
    try:
        return Sample(answer="", contexts=value).contexts
    except ValidationError:
        return None


def distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return the documents in order, without those whose text an earlier one has."""
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(document.page_content, document)
    return tuple(first.values())


def read(reader: Reader, source: Any, name: str) -> Any:
    """Return the value of a mapping's key, of a pydantic object's field, or of a function.

    Raises:
        DemurError: There is no such key. The message has the argument's `name`.
    """
    if callable(reader):
        return reader(source)
    if isinstance(source, Mapping) and reader in source:
        return source[reader]
    if isinstance(source, BaseModel) and reader in type(source).model_fields:
        return getattr(source, reader)
    raise DemurError(f"{name}={reader!r}: there is no such key in {kind_of(source)}")


def as_fields(input: Any) -> Any:
    """Return a graph's state, a pydantic model or a dataclass as a mapping, others unchanged."""
    if isinstance(input, BaseModel) and not isinstance(input, (BaseMessage, PromptValue)):
        return dict(input)
    if is_dataclass(input) and not isinstance(input, type):
        return {field.name: getattr(input, field.name) for field in fields(input)}
    return input


def kind_of(value: Any) -> str:
    """Return in words what a value is: its type and its keys, but not its content."""
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    if isinstance(value, Mapping):
        return f"{article} {name} with the keys {', '.join(map(repr, value)) or '(none)'}"
    if isinstance(value, BaseModel) and not isinstance(value, Serializable):
        return f"{article} {name} with the fields {', '.join(type(value).model_fields)}"
    return f"{article} {name}"
