"""Define Sample: an answer, and the texts that it is checked against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, field_validator
from pydantic_core import to_json

from demur.schema.base import Text, Value
from demur.schema.documents import Contexts


class Sample(Value):
    """Hold an answer and the texts that an evaluator checks it against."""

    question: Text | None = None
    """The question that was answered, if there was one."""
    answer: Text
    """The answer to be judged. A mapping, a list or a pydantic object is converted to its JSON."""
    contexts: Contexts = ()
    """The documents from which the answer was generated. Strings are converted to documents."""
    known: Contexts = ()
    """Texts that hold for every answer, such as what the assistant is. RefChecker counts them among
    the references and quotes them as known; other evaluators do not read them."""
    reference: Text | None = None
    """A text that is known to be right, such as a gold answer."""
    preceding: Text = ""
    """The text right before the answer. It helps to understand the answer and is not judged
    itself."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Anything that you want to keep with the sample."""

    @field_validator("answer", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if isinstance(value, (Mapping, list, BaseModel)):
            return to_json(value).decode()
        return value
