"""A chain's input, in the place of another one that it was asked with.

Many chains give their input out again: `RunnablePassthrough.assign`, retrieval chains, agents with
their messages. One that was told what was wrong with an answer quotes that answer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

Swap = tuple[Any, Any]
"""What was told, and what stands in its place."""

_NOTHING = object()


def as_given(output: Any, sent: Any, original: Any, kept: Sequence[object]) -> Any:
    """The output, with the input in it as it was given at first.

    Args:
        output: The chain's. Only mappings, and lists in them, pass anything on.
        sent: The input that the chain was asked with.
        original: The input at first.
        kept: Keys of the output that stay where they hold documents: those quote no answer.
    """
    if not isinstance(output, Mapping):
        return output
    # What was added is looked for under its own key only: elsewhere a short text may be another's.
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
    """Whether two values say the same. A message's id, which graphs give it, says nothing."""
    if isinstance(first, BaseMessage) and isinstance(second, BaseMessage):
        return (first.type, first.content) == (second.type, second.content)
    try:
        return first is second or bool(first == second)
    except Exception:  # arrays and tables compare into something that is no truth
        return False


def _swaps(sent: Any, original: Any) -> Iterator[Swap]:
    """Each value that was changed, with what it was before."""
    if alike(sent, original) or not isinstance(sent, (str, Mapping, list, tuple, BaseMessage)):
        return  # numbers quote nothing, and the same one may stand anywhere
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
