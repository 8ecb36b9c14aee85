"""Remove a model's reasoning from its reply, so that no parser reads a label in the reasoning.

Providers with a field for reasoning keep it out of a message's text. Others leave it in the text,
between tags such as `<think>` and `</think>`. A chat template may have put the opening tag into the
prompt, so that only the closing tag is in the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

_NAMES = ("think", "thinking", "reasoning")
_TAG = re.compile(rf"<(?P<closing>/?)(?P<name>{'|'.join(_NAMES)})\s*>", re.IGNORECASE)
_BLOCKS = {"reasoning", "thinking", "redacted_thinking"}
_OPENING = tuple(f"<{name}" for name in _NAMES)
# It matches whatever stands before the slash: prompts show texts with another sign instead of `<`.
_QUOTABLE = re.compile(rf"/\s*(?:{'|'.join(_NAMES)})\b", re.IGNORECASE)


def quotable(messages: Sequence[BaseMessage]) -> bool:
    """Return whether a prompt shows a closing tag, which the reply may then quote."""
    return any(_QUOTABLE.search(str(message.content)) for message in messages)


def without_reasoning(text: str, quoted: bool = False) -> str:
    """Return a reply without its reasoning, or unchanged if it has no tags.

    Args:
        text: The text that the model wrote.
        quoted: Whether its tags may be quoted from a text under judgement. Then the result is empty
            unless the reply begins with reasoning and has exactly one closing tag.

    Returns:
        The text outside of the reasoning blocks. Text before a closing tag without an opening one
        is reasoning, too. The result is empty if a block does not end, as in a reply that was cut
        within it.
    """
    tags = [*_TAG.finditer(text)]
    if not tags:
        return text
    if quoted and not _is_plain(text, tags):
        return ""
    kept: list[str] = []
    start = 0
    inside: str | None = None
    for tag in tags:
        closing, name = bool(tag["closing"]), tag["name"].lower()
        if inside is None:
            if closing:
                kept.clear()
            else:
                kept.append(text[start : tag.start()])
                inside = name
            start = tag.end()
        elif closing and name == inside:
            inside = None
            start = tag.end()
    if inside is not None:
        return ""
    # With a space, so that the words before and after a block do not become one word.
    return " ".join([*kept, text[start:]]).strip()


def _is_plain(text: str, tags: Sequence[re.Match[str]]) -> bool:
    begins = not tags[0]["closing"] and not text[: tags[0].start()].strip()
    return begins and bool(tags[-1]["closing"]) and sum(bool(tag["closing"]) for tag in tags) == 1


def begins_with_reasoning(message: AIMessage, first_token: str) -> bool:
    """Return whether the first token of a reply belongs to its reasoning, as far as that shows."""
    token = first_token.strip().lower()
    if token and any(tag.startswith(token) or token.startswith(tag) for tag in _OPENING):
        return True
    blocks = message.content if isinstance(message.content, list) else []
    kinds = {block.get("type") for block in blocks if isinstance(block, dict)}
    return bool(message.additional_kwargs.get("reasoning_content") or kinds & _BLOCKS)
