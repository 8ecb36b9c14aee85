"""What says where a question, an answer or contexts stand: a key, or a function."""

from __future__ import annotations

from demur.shapes.finding import kind_of


def check_reader(name: str, reader: object, source: str) -> None:
    """Refuse what is neither a key nor a function, nor None.

    Args:
        name: The argument's name.
        reader: What was given.
        source: In what it finds something, such as "the output".

    Raises:
        TypeError: It is neither.
    """
    if reader is None or isinstance(reader, str) or callable(reader):
        return
    raise TypeError(
        f"{name}= says where to find it: expected a key of {source}, or a function that returns "
        f"it, got {kind_of(reader)}"
    )
