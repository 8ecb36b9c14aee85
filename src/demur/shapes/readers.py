"""Read by readers, which say where a question, an answer or contexts are: a key, or a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.load.serializable import Serializable
from pydantic import BaseModel

from demur.errors import DemurError

Reader = str | Callable[[Any], Any]
"""The way to find something: a key, or a function."""
ContextsReader = Reader | Callable[[Any, Any], Any]
"""The way to find contexts: a key, or a function of the output, or of the input and the output."""


def check_reader(name: str, reader: object, source: str) -> None:
    """Raise an error if a reader is neither a key nor a function, nor None.

    Args:
        name: The argument's name.
        reader: The argument's value.
        source: Where the reader finds something, in words, such as "the output".

    Raises:
        TypeError: The reader is of another kind.
    """
    if reader is None or isinstance(reader, str) or callable(reader):
        return
    raise TypeError(
        f"{name}= says where to find it: expected a key of {source}, or a function that returns "
        f"it, got {kind_of(reader)}"
    )


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


def read_contexts(reader: ContextsReader, input: Any, output: Any) -> Any:
    """Return what a reader of contexts finds; a key is looked for in the output first."""
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


def kind_of(value: Any) -> str:
    """Return in words what a value is: its type and its keys, but not its content."""
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    if isinstance(value, Mapping):
        return f"{article} {name} with the keys {', '.join(map(repr, value)) or '(none)'}"
    if isinstance(value, BaseModel) and not isinstance(value, Serializable):
        return f"{article} {name} with the fields {', '.join(type(value).model_fields)}"
    return f"{article} {name}"
