"""Say in one line what is invalid about a value, without quoting it.

The message of pydantic itself has several lines, and quotes the value. That may be an answer, or
hold a key.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)


def validated(kind: type[M], value: object, expected: str) -> M:
    """Return the value itself if it is of this kind, or else make one from a mapping of its fields.

    Args:
        kind: The class of the result.
        value: An instance or a mapping.
        expected: A description of both, for the error.

    Raises:
        ValueError: The value is neither, or a field is invalid.
    """
    if isinstance(value, kind):
        return value
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ValueError(f"expected {expected}: {in_words(error)}") from None


def in_words(error: ValidationError) -> str:
    """Return each invalid field with the reason: "contexts: item 0: expected a string, got int"."""
    found = error.errors(include_url=False, include_input=False)
    return "; ".join(_reason(".".join(map(str, one["loc"])), one["msg"]) for one in found)


def _reason(field: str, message: str) -> str:
    reason = message.removeprefix("Value error, ")
    return f"{field}: {reason}" if field else reason
