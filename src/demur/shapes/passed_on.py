"""Put a chain's original input back into its output, if the chain was asked with another input.

Many chains return their input: `RunnablePassthrough.assign`, retrieval chains, agents with their
messages. If that input says what was wrong with an earlier answer, it quotes that answer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

Swap = tuple[Any, Any]
"""A value that was sent to the chain, and the original value that replaces it."""

_NOTHING = object()


def as_given(output: Any, sent: Any, original: Any, kept: Sequence[object]) -> Any:
    """Return the output with the original input in place of the input that was sent.

    Args:
        output: The chain's output. Only mappings, and lists in them, are searched.
        sent: The input that the chain was asked with.
        original: The input as the user gave it.
        kept: The keys of the output that do not change unless they hold a string: they hold
            documents, which quote no answer.
    """
    if not isinstance(output, Mapping):
        return output
    # An added value is looked for under its own key only: elsewhere, a short text may come from
    # another source.
    changed = [(now, before) for now, before in _swaps(sent, original) if before is not _NOTHING]
    new: dict[Any, Any] = {}
    for key, value in output.items():
        if key in kept and not isinstance(value, str):
            new[key] = value
            continue
        here = isinstance(sent, Mapping) and isinstance(original, Mapping) and key in sent
        own = _swaps(sent[key], original.get(key, _NOTHING)) if here else ()
        new[key] = _back(value, [*own, *changed])
    if all(new[key] is value for key, value in output.items()):
        return output
    copied = copy.copy(output) if isinstance(output, MutableMapping) else dict(output)
    copied.clear()
    copied.update((key, value) for key, value in new.items() if value is not _NOTHING)
    return copied


def alike(first: Any, second: Any) -> bool:
    """Return whether two values say the same; the id of a message, which graphs set, is ignored."""
    if isinstance(first, BaseMessage) and isinstance(second, BaseMessage):
        return (first.type, first.content) == (second.type, second.content)
    try:
        return first is second or bool(first == second)
    except Exception:  # the comparison of arrays and tables has no truth value
        return False


def _swaps(sent: Any, original: Any) -> Iterator[Swap]:
    """Yield each value that was changed, with its earlier value."""
    if alike(sent, original) or not isinstance(sent, (str, Mapping, list, tuple, BaseMessage)):
        return  # a number quotes nothing, and an equal one may stand anywhere
    yield sent, original
    if isinstance(sent, Mapping) and isinstance(original, Mapping):
        for key, value in sent.items():
            yield from _swaps(value, original.get(key, _NOTHING))
    elif isinstance(sent, (list, tuple)):
        before = original if isinstance(original, (list, tuple)) else ()
        for at, value in enumerate(sent):
            if not any(alike(value, earlier) for earlier in before):
                yield from _swaps(value, before[at] if len(before) == len(sent) else _NOTHING)


def _back(value: Any, swaps: Sequence[Swap]) -> Any:
    for sent, original in swaps:
        if alike(value, sent):
            return original
    if not isinstance(value, list):
        return value
    new = [_back(entry, swaps) for entry in value]
    if all(after is before for after, before in zip(new, value, strict=True)):
        return value
    return [entry for entry in new if entry is not _NOTHING]
