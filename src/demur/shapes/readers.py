"""Check readers, which say where a question, an answer or contexts are: a key, or a function."""

from __future__ import annotations

from demur.shapes.finding import kind_of


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
