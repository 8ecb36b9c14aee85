"""Read what an agent did: its calls of tools, and what came of each."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from demur._secrets import SECRET, is_secret_name, known_secrets, secrets_in, without_secrets
from demur._text import plain, replace_surrogates
from demur.schema import Sample
from demur.shapes.finding import distinct
from demur.shapes.forms import as_messages, in_parts
from demur.shapes.messages import last_written, sources, this_turn
from demur.shapes.outcomes import CallStatus, status_of_result
from demur.shapes.readers import kind_of

_STATUS, _EARLIER, _ARGUMENTS = "tool_call", "earlier", "arguments"
# A result of more characters stands in a document of its own, and is cut here.
_MOST_OF_RESULT = 400
# What is nested deeper is not written out.
_DEEPEST = 50
_SERVER_CALL = "server_tool_call"
_CALL_KIND = re.compile(r"server_tool_(?:call|use)|(?!function_|tool_)\w+_call")
_CALLED = "The assistant called "
_NO_CALLS = "The assistant called no tool. It did nothing."
_SAID = {"done": "It succeeded", "failed": "It failed", "pending": "It is not finished"}


@dataclass(frozen=True)
class _ToolCall:
    """Hold one call of a tool."""

    name: str
    args: Any
    id: str | None
    turn: int
    status: CallStatus = "pending"
    result: str = ""

    def returned(self, text: str, *, failed: bool) -> _ToolCall:
        """Return the call with its result, which may say itself that the call failed."""
        status = "failed" if failed else status_of_result(text, self.name, self.args)
        return replace(self, status=status, result=text)

    def document(self, earlier: bool, known: Collection[str]) -> Document:
        """Return the call in words, without the `known` secrets and those that a name tells."""
        given = self.args if isinstance(self.args, Mapping) else {"": self.args}
        args = [f"{name}={one}".lstrip("=") for name, one in _values(given, known).items()]
        # Evaluators read plain letters, and the lengths count.
        parts = [*map(_plainly, [f"{_CALLED}{self.name}(", *args])]
        called = f"{parts[0]}{', '.join(parts[1:])})"
        result = without_secrets(replace_surrogates(self.result.strip()), known)
        if self.status == "done" and len(result) > _MOST_OF_RESULT:
            result = f"{result[:_MOST_OF_RESULT]} ..."
        said = f"{_SAID[self.status]}: {result}" if result else f"{_SAID[self.status]}."
        id_ = self.id and replace_surrogates(self.id)
        about = {"tool": replace_surrogates(self.name), "tool_call_id": id_, "turn": self.turn}
        told = {_STATUS: self.status, _EARLIER: earlier, _ARGUMENTS: [*map(len, parts)]}
        return Document(f"{called}. {said}", metadata=about | told)


def tool_calls(messages: Sequence[BaseMessage], *, complete: bool) -> tuple[Document, ...]:
    """Return the calls of tools in a conversation, a document for each, in their order.

    A call's document says its name, its arguments, and its result or its error. Its metadata has
    `tool_call` (see `CallStatus`), `tool`, `tool_call_id`, `turn`, and `earlier`: whether the call
    stands before the user's last message. Secret arguments are masked, also where they come back.

    A call failed if its message has the status "error", or if its result says so
    (`outcomes.status_of_result`). A result belongs to the last call before it that has its id.

    Args:
        messages: The messages of the conversation. One that stands there twice counts once.
        complete: Whether the assistant can do nothing but by calls in these messages. Then a
            conversation without calls and results has one document: that nothing was done.
    """
    # What was done stays done if its message is removed.
    given = {one.id or id(one): one for one in messages if one.type != "remove"}
    once = [part for message in given.values() for part in in_parts(message)]
    called = _called(once)
    turns = sum(isinstance(message, HumanMessage) for message in once)
    if not called:
        # A result without its call says that something was done.
        complete &= not any(message.type in ("tool", "function") for message in once)
        nothing = Document(_NO_CALLS, metadata={_STATUS: "none", _EARLIER: False})
        return (nothing,) if complete else ()
    known = known_secrets().union(*(secrets_in(call.args) for call in called))
    return tuple(call.document(call.turn < turns, known) for call in called)


def sample_of(messages: Any) -> Sample:
    """Return the sample of an agent's messages, which are judged as the whole of what was done.

    The question is the user's last message, and the answer is what the model wrote last behind it.
    The contexts are what tools returned (`sources`), followed by the calls (`tool_calls`).

    Args:
        messages: The messages of the conversation, also in short form, `("user", "...")`, and as
            they dump themselves, `{"type": "human", "content": "..."}`.

    Raises:
        ValueError: A value is no message, or the model wrote no answer after the user's last one.
    """
    listed = messages if isinstance(messages, Sequence) and not isinstance(messages, str) else []
    unread = ((at, one) for at, one in enumerate(listed) if not as_messages([one]))
    odd = next((f"{kind_of(one)} at index {at}" for at, one in unread), None)
    given = [] if odd else as_messages(listed)
    last = last_written(this_turn(given))
    if last is None or last.tool_calls:
        got = odd or f"{kind_of(messages)} with {len(given)} messages"
        raise ValueError(
            "expected messages that end with the model's answer, and nothing but messages, got "
            f"{got}: give an agent's messages, in LangChain's classes, dumped by them, or in short "
            "form, when it is done"
        )
    said = (message for message in reversed(given) if isinstance(message, HumanMessage))
    return Sample(
        question=next((str(message.text) for message in said), None),
        answer=str(last.text),
        contexts=(*sources(given), *tool_calls(given, complete=True)),
    )


def status_of_call(document: Document) -> CallStatus | None:
    """Return what came of the call that a document of `tool_calls` describes; None for others."""
    status = document.metadata.get(_STATUS)
    return status if status in get_args(CallStatus) and _EARLIER in document.metadata else None


def calls_last(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return the distinct documents, followed by all of `tool_calls`, which may read the same.

    The indices of the others are then the same if the calls are left out.
    """
    given = [*documents]
    others = distinct(document for document in given if not status_of_call(document))
    return (*others, *filter(status_of_call, given))


def parts_of_call(document: Document) -> tuple[str, ...]:
    """Return the tool's name, and each argument with its name, from a document of `tool_calls`.

    A text that was changed since, such as by a handler's `redact`, is a single part.
    """
    text, given = document.page_content, document.metadata.get(_ARGUMENTS)
    lengths = [one for one in given if isinstance(one, int)] if isinstance(given, list) else []
    parts, rest = [], text
    for length in lengths:
        parts.append(rest[:length])
        rest = rest[length:].removeprefix(", " if parts[1:] else "")
    called = f"{', '.join(parts[1:])}). It "
    if not parts or not text.startswith(f"{parts[0]}{called}") or not parts[0].endswith("("):
        parts = [text]
    return (parts[0].removeprefix(_CALLED).removesuffix("("), *parts[1:])


def _called(messages: Sequence[BaseMessage]) -> list[_ToolCall]:
    """Return the calls in order, each with what came of it."""
    called: list[_ToolCall] = []
    last: dict[str | None, int] = {}
    turn = 0
    for message in messages:
        turn += isinstance(message, HumanMessage)
        if isinstance(message, ToolMessage) and message.tool_call_id in last:
            at, failed = last[message.tool_call_id], message.status == "error"
            called[at] = called[at].returned(str(message.text), failed=failed)
        if not isinstance(message, AIMessage):
            continue
        for call in message.tool_calls:
            last[call["id"]] = len(called)
            called.append(_ToolCall(call["name"], call["args"], call["id"], turn))
        for wrong in message.invalid_tool_calls:
            why = wrong["error"] or "the arguments cannot be read"
            name, args = wrong["name"] or "a tool", wrong["args"] or ""
            called.append(_ToolCall(name, args, wrong["id"], turn, "failed", why))
        if not isinstance(message.content, str):
            called += _of_server(message, turn)
    return called


def _of_server(message: AIMessage, turn: int) -> Iterator[_ToolCall]:
    """Yield the calls that the provider made itself, such as a search on its server."""
    try:
        blocks: Sequence[Any] = message.content_blocks
    except Exception:  # LangChain cannot read a block; what is a call is known by its name
        kinds = [str(one.get("type")) for one in message.content if isinstance(one, dict)]
        blocks = [{"type": _SERVER_CALL, "name": one} for one in kinds if _CALL_KIND.fullmatch(one)]
    results = {
        str(one.get("tool_call_id")): one for one in blocks if one["type"] == "server_tool_result"
    }
    for call in blocks:
        if call["type"] != _SERVER_CALL:
            continue
        name = str(_extra(call, "tool_name") or call.get("name") or "a tool")
        id_ = call.get("id") and str(call["id"])
        made = _ToolCall(name, call.get("args") or {}, id_, turn)
        if (result := results.get(str(id_))) is not None:
            text = _as_text(result.get("output") or _extra(result, "error") or "")
            made = made.returned(text, failed=result.get("status") == "error")
        yield made


def _extra(block: Mapping[str, Any], key: str) -> Any:
    extras = block.get("extras")
    return extras.get(key) if isinstance(extras, Mapping) else None


def _values(held: Mapping[Any, Any], known: Collection[str], depth: int = 0) -> dict[Any, str]:
    """Return the values in words, with those masked that a name under or beside them tells."""
    said = held.get("name", held.get("key"))
    secret = ("value",) if isinstance(said, str) and _is_secret(said) else ()
    return {
        name: SECRET if name in secret or _is_secret(str(name)) else _value(one, known, depth)
        for name, one in held.items()
    }


def _is_secret(name: str) -> bool:
    return is_secret_name(_plainly(name))


def _value(value: Any, known: Collection[str], depth: int) -> str:
    if isinstance(value, (Mapping, list, tuple)) and depth >= _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        values = _values(value, known, depth + 1).items()
        return f"{{{', '.join(f'{name}: {one}' for name, one in values)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(one, known, depth + 1) for one in value)}]"
    return without_secrets(_as_text(value), known)


def _plainly(text: str) -> str:
    text = replace_surrogates(text)
    while letters := plain(text):
        text = letters.text
    return text


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
