"""Provide the base of the values, and the kinds of their fields."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from demur._text import replace_surrogates


def _clean(value: object) -> object:
    return replace_surrogates(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean)]
"""A string in which each lone surrogate has become one U+FFFD, so that offsets still hold."""


_MOST = 2**40


def at_most(number: float) -> float:
    """Return the number, or 2**40 if it is larger."""
    return type(number)(min(number, _MOST))


Count = Annotated[int, Field(ge=0), AfterValidator(at_most)]
"""A count, at most 2**40."""


class Word(str, Enum):
    """Be the base class of closed lists of words, each of which is its own text."""

    def __str__(self) -> str:
        return str(self.value)


class Value(BaseModel):
    """Be the base class of the values: they never change, and no field is unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")
