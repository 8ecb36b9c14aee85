"""Read what an agent did: its calls of tools, and what came of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from demur._credentials import SECRET, without_secrets
from demur._known_secrets import known_secrets
from demur._secret_names import is_secret_name
from demur.schema import Sample
from demur.shapes.finding import as_messages
from demur.shapes.messages import last_written, sources, this_turn

CallStatus = Literal["done", "failed", "pending", "none"]
"""What came of a call: it returned, it failed, it has not finished. "none" stands for a trace
without any call."""

_STATUS, _EARLIER = "tool_call", "earlier"
# A result of more characters stands in a document of its own, and is cut here.
_MOST_OF_RESULT = 400
_NO_CALLS = "The assistant called no tool. It did nothing."
_SAID = {
    "done": "It succeeded",
    "failed": "It failed",
    "pending": "It is not finished",
}
_BAD = re.compile("error|fail(?:ed|ure)|rejected|denied|declined|refused|forbidden|unauthorized")
_WAITING = re.compile("queued|pending|awaiting|waiting|in_?progress|processing")
_STATES = ("status", "state", "result")
_CODES = ("status", "statuscode", "code")
_FAILED_TEXT = re.compile(
    r"\s*(?:\w*(?:Error|Exception)\b\s*[:(]|(?:error|failed|failure)\b\s*[:!]|Traceback \("
    r"|HTTP/[\d.]+ [45]\d\d\b|[45]\d\d [A-Z])",
)


@dataclass(frozen=True)
class _ToolCall:
    """Hold one call of a tool."""

    name: str
    args: Any
    id: str | None
    turn: int
    status: CallStatus = "pending"
    result: str = ""

    @property
    def text(self) -> str:
        """Return the call in words, without the values that are secret."""
        given = self.args if isinstance(self.args, Mapping) else {"": self.args}
        args = ", ".join(
            f"{name}={_value(name, value)}".lstrip("=") for name, value in given.items()
        )
        result = self.result.strip()
        if self.status == "done" and len(result) > _MOST_OF_RESULT:
            result = f"{result[:_MOST_OF_RESULT]} ..."
        said = f"{_SAID[self.status]}: {result}" if result else f"{_SAID[self.status]}."
        return without_secrets(f"The assistant called {self.name}({args}). {said}", known_secrets())


def tool_calls(messages: Sequence[BaseMessage], *, complete: bool) -> tuple[Document, ...]:
    """Return the calls of tools in a conversation, a document for each, in their order.

    A call's document says its name, its arguments, and its result or its error. Its metadata has
    `tool_call` (see `CallStatus`), `tool`, `tool_call_id`, `turn`, and `earlier`: whether the call
    stands before the user's last message. Secret arguments are masked.

    A call failed if its message has the status "error", or if its result says so: a JSON object
    with `"error": ...` or `"ok": false`, or a text that begins like an exception.

    Args:
        messages: The messages of the conversation. One that stands there twice counts once.
        complete: Whether the assistant can do nothing but by calls in these messages. Then a
            conversation without calls has one document, which says that nothing was done.
    """
    called = [*_called(messages)]
    turns = sum(isinstance(message, HumanMessage) for message in messages)
    if not called and complete:
        return (Document(_NO_CALLS, metadata={_STATUS: "none", _EARLIER: False}),)
    return tuple(
        Document(
            call.text,
            metadata={
                "tool": call.name,
                "tool_call_id": call.id,
                "turn": call.turn,
                _STATUS: call.status,
                _EARLIER: call.turn < turns,
            },
        )
        for call in called
    )


def sample_of(messages: Sequence[Any]) -> Sample:
    """Return the sample of an agent's messages, which are judged as the whole of what was done.

    The question is the user's last message, and the answer is what the model wrote last behind it.
    The contexts are what tools returned (`sources`), followed by the calls (`tool_calls`).

    Args:
        messages: The messages of the conversation, also in short form: `("user", "...")`.

    Raises:
        ValueError: There are no messages, or the model wrote no answer after the user's last one.
    """
    given = as_messages(messages)
    last = last_written(this_turn(given))
    if last is None or last.tool_calls:
        raise ValueError(
            f"expected messages that end with the model's answer, got {len(given)} messages "
            "without one: give an agent's messages when it is done"
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
    """Return the documents with those of `tool_calls` behind all others.

    Then the indices of the others are the same if the calls are left out.
    """
    return tuple(sorted(documents, key=lambda document: status_of_call(document) is not None))


def is_earlier_call(document: Document) -> bool:
    """Return whether a document of `tool_calls` stands before the user's last message."""
    return bool(document.metadata.get(_EARLIER))


def _called(messages: Sequence[BaseMessage]) -> Iterator[_ToolCall]:
    results = {one.tool_call_id: one for one in messages if isinstance(one, ToolMessage)}
    turn = 0
    for message in {one.id or id(one): one for one in messages}.values():
        turn += isinstance(message, HumanMessage)
        if not isinstance(message, AIMessage):
            continue
        for call in message.tool_calls:
            result = results.get(call["id"] or "")
            yield _ToolCall(call["name"], call["args"], call["id"], turn, *_came(result))
        for wrong in message.invalid_tool_calls:
            why = wrong["error"] or "the arguments cannot be read"
            name = wrong["name"] or "a tool"
            yield _ToolCall(name, wrong["args"], wrong["id"], turn, "failed", why)
        if not isinstance(message.content, str):
            yield from _of_server(message, turn)


def _of_server(message: AIMessage, turn: int) -> Iterator[_ToolCall]:
    """Yield the calls that the provider made itself, such as a search on its server."""
    blocks: Sequence[Any] = message.content_blocks
    results = {one["tool_call_id"]: one for one in blocks if one["type"] == "server_tool_result"}
    for call in blocks:
        if call["type"] != "server_tool_call":
            continue
        result = results.get(call["id"])
        came: tuple[CallStatus, str] = ("pending", "")
        if result is not None:
            text = _as_text(result.get("output") or "")
            came = ("failed" if result.get("status") == "error" else _status(text), text)
        yield _ToolCall(call["name"], call["args"], call["id"], turn, *came)


def _came(message: ToolMessage | None) -> tuple[CallStatus, str]:
    if message is None:
        return "pending", ""
    text = str(message.text)
    return ("failed" if message.status == "error" else _status(text)), text


def _status(text: str) -> CallStatus:
    """Return what a result says of its call."""
    try:
        said = json.loads(text)
    except ValueError:
        return "failed" if _FAILED_TEXT.match(text) else "done"
    if not isinstance(said, Mapping):
        return "done"
    plain = {str(name).lower(): value for name, value in said.items()}
    states = [str(plain[name]).lower() for name in _STATES if isinstance(plain.get(name), str)]
    codes = [plain[name] for name in _CODES if type(plain.get(name)) is int]
    failed = (
        plain.get("error")
        or plain.get("errors")
        or any(plain.get(name) is False for name in ("ok", "success"))
        or any(400 <= code < 600 for code in codes)
        or any(map(_BAD.match, states))
    )
    if failed:
        return "failed"
    return "pending" if any(map(_WAITING.match, states)) else "done"


def _value(name: str, value: Any) -> str:
    if is_secret_name(str(name)):
        return SECRET
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_value(key, one)}' for key, one in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(name, one) for one in value)}]"
    return _as_text(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
