"""Collect what an agent was given, from whose texts the arguments of its calls must come."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from demur.shapes.forms import as_messages
from demur.shapes.outcomes import status_of_result

# A short result that says so, apart from what was sought, only repeats that.
_NOTHING_FOUND = re.compile(
    r"\b(?:0 \w+|aucun\w*|invalid|kein\w*|nicht|ning[uú]n\w*|no|none|not|nothing|unknown|zero)\b"
    r"|\"(?:count|data|exists|hits|items|records|results?|total|\w*found)\": ?(?:0|false|null|\[\])"
    r"|\A\s*(?:\[\]|\{\})\s*\Z",
    re.IGNORECASE,
)
_MOST_LEFT = 150
# Arguments that a model writes freely: what it searched for, for one.
_WRITTEN = re.compile(
    "(?:.*_)?(?:body|content|keywords?|message|notes?|prompt|q|query|question|search|subject|text)",
    re.IGNORECASE,
)
_SHORTEST, _LONGEST = 3, 100
_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|/)")


def given_texts(messages: Sequence[Any], *, untrusted: Collection[str] = ()) -> tuple[str, ...]:
    """Return what an agent was given in a conversation, text by text.

    These are the messages of the user and the system, the results and the errors of tools, and the
    short arguments of earlier calls that were done, but for texts and searches. What the model said
    is not given. A result that says only that nothing was found, or that the call failed, is
    without the arguments of its call: `No results for "ORD-1"`.

    Args:
        messages: The messages, in LangChain's classes, in short form, or dumped.
        untrusted: The names of tools whose results do not count, since others write into them.
    """
    untrusted = (untrusted,) if isinstance(untrusted, str) else untrusted
    texts: list[str] = []
    calls: dict[str | None, ToolCall] = {}
    for message in as_messages(messages):
        if isinstance(message, AIMessage):
            calls |= {call["id"]: call for call in message.tool_calls}
        elif not isinstance(message, ToolMessage):
            texts.append(str(message.text))
        else:
            call = calls.get(message.tool_call_id)
            name = message.name or (call["name"] if call else "")
            if name not in untrusted:
                args = call["args"] if call else {}
                texts += _returned(message, name, args)
    return tuple(text for text in texts if text.strip())


def _returned(message: ToolMessage, tool: str, args: Mapping[str, Any]) -> Iterator[str]:
    text = rest = _unescaped(str(message.text))
    for value in sorted(_strings(args), key=len, reverse=True):
        rest = rest.replace(value, " ")
    named = [
        value
        for name, value in args.items()
        if isinstance(value, str) and len(value) < _LONGEST and not _WRITTEN.fullmatch(name)
    ]
    failed = message.status == "error" or (
        (named or rest != text) and status_of_result(text, tool, args) == "failed"
    )
    left = " ".join(rest.split())
    if failed or (len(left) < _MOST_LEFT and _NOTHING_FOUND.search(text)):
        yield rest
    else:
        yield text
        yield from named


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings and the numbers in a value, but for short ones, which stand anywhere."""
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _strings(one)
    elif not isinstance(value, bool) and len(str(value)) >= _SHORTEST:
        yield str(value)


def _unescaped(text: str) -> str:
    """Return a text without the escapes of JSON, at any depth."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text)
