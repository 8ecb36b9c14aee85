"""Read what an agent did: its calls of tools, and what came of each."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal, get_args

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from demur._credentials import SECRET, without_secrets
from demur._known_secrets import known_secrets, secrets_in
from demur._plain_letters import plain
from demur._secret_names import is_secret_name
from demur._text import replace_surrogates
from demur.schema import Sample
from demur.shapes.finding import as_messages, distinct, kind_of
from demur.shapes.messages import last_written, sources, this_turn

CallStatus = Literal["done", "failed", "pending", "none"]
"""What came of a call: it returned, it failed, it has not finished. "none" stands for a trace
without any call."""

_STATUS, _EARLIER, _ARGUMENTS = "tool_call", "earlier", "arguments"
# A result of more characters stands in a document of its own, and is cut here.
_MOST_OF_RESULT = 400
_CALLED = "The assistant called "
_NO_CALLS = "The assistant called no tool. It did nothing."
_SAID = {"done": "It succeeded", "failed": "It failed", "pending": "It is not finished"}
_BAD = re.compile(
    "(?:error(?:s|ed)?|fail(?:ed|ure)?|rejected|denied|declined|refused|forbidden|unauthorized"
    "|unsuccessful|time[d_ -]*out|not[_ -]?(?:found|sent|allowed))(?!-free|[a-z])"
)
_WAITING = re.compile("queued|pending|awaiting|waiting|in[_ -]?progress|processing|requires[_ -]")
_STATES = ("status", "state", "result")
_NO = ("false", "0", "no")
_NONE = ("", "none", "null", "[]", "{}", *_NO)
_HTTP = "|".join(f"{one.value} {one.phrase}" for one in HTTPStatus if one.value >= 400)
_NOTHING_WRONG = r"(?!\s*(?i:none|null|0)\s*(?:[,;\n]|\Z))"
_FAILED_TEXT = re.compile(
    rf"\s*(?:[\w.]*(?:Error|Exception)(?:\(|\s*:{_NOTHING_WRONG})|Traceback \("
    r"|\{'(?:(?:ok|success)': False|error': (?!None|False|''|\[\])|status': '(?:error|fail))"
    rf"|(?i:(?:error|failed|failure)\s*[:!]{_NOTHING_WRONG}|error (?:executing|[45]\d\d)\b"
    rf"|(?:failed|unable) to\b|could(?: not|n't)\b|HTTP(?:/[\d.]+)? [45]\d\d\b|(?:{_HTTP})\b))"
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

    def returned(self, text: str, *, failed: bool) -> _ToolCall:
        """Return the call with its result, which may say itself that the call failed."""
        return replace(self, status="failed" if failed else _status(text), result=text)

    def document(self, earlier: bool, known: Collection[str]) -> Document:
        """Return the call in words, without the `known` secrets and those that a name tells."""
        given = self.args if isinstance(self.args, Mapping) else {"": self.args}
        args = [f"{name}={_value(name, one, known)}".lstrip("=") for name, one in given.items()]
        # Evaluators read plain letters, and the lengths count.
        parts = [*map(_plainly, [f"{_CALLED}{self.name}(", *args])]
        called = f"{parts[0]}{', '.join(parts[1:])})"
        result = without_secrets(replace_surrogates(self.result.strip()), known)
        if self.status == "done" and len(result) > _MOST_OF_RESULT:
            result = f"{result[:_MOST_OF_RESULT]} ..."
        said = f"{_SAID[self.status]}: {result}" if result else f"{_SAID[self.status]}."
        about = {"tool": self.name, "tool_call_id": self.id, "turn": self.turn}
        told = {_STATUS: self.status, _EARLIER: earlier, _ARGUMENTS: [*map(len, parts)]}
        return Document(f"{called}. {said}", metadata=about | told)


def tool_calls(messages: Sequence[BaseMessage], *, complete: bool) -> tuple[Document, ...]:
    """Return the calls of tools in a conversation, a document for each, in their order.

    A call's document says its name, its arguments, and its result or its error. Its metadata has
    `tool_call` (see `CallStatus`), `tool`, `tool_call_id`, `turn`, and `earlier`: whether the call
    stands before the user's last message. Secret arguments are masked, also where they come back.

    A call failed if its message has the status "error", or if its result says so: JSON with an
    error, `"ok": false` or a status of failure, or a text that begins like an exception, an HTTP
    error or "Failed to". A result belongs to the last call before it that has its id.

    Args:
        messages: The messages of the conversation. One that stands there twice counts once.
        complete: Whether the assistant can do nothing but by calls in these messages. Then a
            conversation without calls and results has one document: that nothing was done.
    """
    # What was done stays done if its message is removed.
    once = [*{one.id or id(one): one for one in messages if one.type != "remove"}.values()]
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
    given = as_messages(messages) if isinstance(messages, Sequence) else []
    last = last_written(this_turn(given))
    if last is None or last.tool_calls or len(given) < len(messages):
        raise ValueError(
            "expected messages that end with the model's answer, and nothing but messages, got "
            f"{kind_of(messages)} with {len(given)} messages: give an agent's messages, in "
            "LangChain's classes, dumped by them, or in short form, when it is done"
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
    """Return the tool's name, and each argument with its name, from a document of `tool_calls`."""
    text, given = document.page_content, document.metadata.get(_ARGUMENTS)
    lengths = [one for one in given if isinstance(one, int)] if isinstance(given, list) else []
    parts, start = [], 0
    for length in lengths or [len(text)]:
        parts.append(text[start : start + length])
        start += length + (len(", ") if start else 0)
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
    blocks: Sequence[Any] = message.content_blocks
    results = {
        one.get("tool_call_id"): one for one in blocks if one["type"] == "server_tool_result"
    }
    for call in blocks:
        if call["type"] != "server_tool_call":
            continue
        name = (call.get("extras") or {}).get("tool_name") or call.get("name") or "a tool"
        made = _ToolCall(name, call.get("args") or {}, call.get("id"), turn)
        if (result := results.get(made.id)) is not None:
            error = (result.get("extras") or {}).get("error")
            text = _as_text(result.get("output") or error or "")
            made = made.returned(text, failed=result.get("status") == "error")
        yield made


def _status(text: str) -> CallStatus:
    """Return what a result says of its call."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    if isinstance(said, list) and len({*map(_of_value, said)}) == 1:
        return _of_value(said[0])
    return _of_value(said)


def _of_value(said: object) -> CallStatus:
    if isinstance(said, str) and _FAILED_TEXT.match(said):
        return "failed"
    if not isinstance(said, Mapping):
        return "done"
    values = {re.sub("[_ -]", "", str(name)).lower(): value for name, value in said.items()}
    bad, good = (
        {str(values.get(name)).strip().lower() for name in names}
        for names in (("error", "errors"), ("ok", "success"))
    )
    states = [str(values[name]).lower() for name in _STATES if isinstance(values.get(name), str)]
    codes = [values.get("status"), values.get("statuscode")]
    if "message" in values:  # else it may be a code of something else, such as an area
        codes.append(values.get("code"))
    failed = (
        not bad.issubset(_NONE)
        or not good.isdisjoint(_NO)
        or values.get("iserror") is True
        or any(re.fullmatch(r"[45]\d\d", str(code)) for code in codes)
        or any(_BAD.match(state) or _FAILED_TEXT.match(state) for state in states)
    )
    if failed:
        return "failed"
    return "pending" if any(map(_WAITING.match, states)) else "done"


def _value(name: object, value: Any, known: Collection[str]) -> str:
    if is_secret_name(str(name)):
        return SECRET
    if isinstance(value, Mapping):
        each = (f"{key}: {_value(key, one, known)}" for key, one in value.items())
        return f"{{{', '.join(each)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(name, one, known) for one in value)}]"
    return without_secrets(_as_text(value), known)


def _plainly(text: str) -> str:
    text = replace_surrogates(text)
    letters = plain(text)
    return text if letters is None else letters.text


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
