"""The guard's own input, in the place of what `with_feedback` made of it.

Many chains give their input out again: `RunnablePassthrough.assign`, retrieval chains, agents with
their messages. What `with_feedback` made of the input quotes the rejected answer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

Swap = tuple[Any, Any]
"""What was told, and what stands in its place."""

_NOTHING = object()


def as_given(output: Any, told: Any, given: Any, kept: Sequence[object]) -> Any:
    """The output, with the input in it as the guard was given it.

    Args:
        output: The chain's. Only mappings, and lists in them, pass anything on.
        told: The input with feedback.
        given: The guard's input.
        kept: Keys of the output that stay where they hold documents: those quote no answer.
    """
    if not isinstance(output, Mapping):
        return output
    # What was added is looked for under its own key only: elsewhere a short text may be another's.
    changed = [(now, before) for now, before in _swaps(told, given) if before is not _NOTHING]
    new: dict[Any, Any] = {}
    for key, value in output.items():
        if key in kept and not isinstance(value, str):
            new[key] = value
            continue
        here = isinstance(told, Mapping) and isinstance(given, Mapping) and key in told
        own = _swaps(told[key], given.get(key, _NOTHING)) if here else ()
        new[key] = _back(value, [*own, *changed])
    if all(new[key] is value for key, value in output.items()):
        return output
    copied = copy.copy(output) if isinstance(output, MutableMapping) else dict(output)
    copied.clear()
    copied.update((key, value) for key, value in new.items() if value is not _NOTHING)
    return copied


def alike(one: Any, other: Any) -> bool:
    """Whether two values say the same. A message's id, which graphs give it, says nothing."""
    if isinstance(one, BaseMessage) and isinstance(other, BaseMessage):
        return (one.type, one.content) == (other.type, other.content)
    try:
        return one is other or bool(one == other)
    except Exception:  # arrays and tables compare into something that is no truth
        return False


def _swaps(told: Any, given: Any) -> Iterator[Swap]:
    """Each value that was changed, with what it was before."""
    if alike(told, given) or not isinstance(told, (str, Mapping, list, tuple, BaseMessage)):
        return  # numbers quote nothing, and the same one may stand anywhere
    yield told, given
    if isinstance(told, Mapping) and isinstance(given, Mapping):
        for key, value in told.items():
            yield from _swaps(value, given.get(key, _NOTHING))
    elif isinstance(told, (list, tuple)):
        before = given if isinstance(given, (list, tuple)) else ()
        for at, value in enumerate(told):
            if not any(alike(value, one) for one in before):
                yield from _swaps(value, before[at] if len(before) == len(told) else _NOTHING)


def _back(value: Any, swaps: Sequence[Swap]) -> Any:
    for told, given in swaps:
        if alike(value, told):
            return given
    if not isinstance(value, list):
        return value
    new = [_back(one, swaps) for one in value]
    if all(one is other for one, other in zip(new, value, strict=True)):
        return value
    return [one for one in new if one is not _NOTHING]
