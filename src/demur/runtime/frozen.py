"""Provide FrozenRunnable: its fields never change, and further parts are derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableSerializable
from langchain_core.runnables.utils import Input, Output
from pydantic import ConfigDict, ValidationError
from typing_extensions import Self


def fields_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields from the `locals()` of an `__init__`, in which each argument names a field.

    The signature can then be written out for editors, and the options need not be listed again.
    """
    return {name: value for name, value in arguments.items() if name not in ("self", "__class__")}


class FrozenRunnable(RunnableSerializable[Input, Output]):
    """Base class of the evaluators and the guard.

    A subclass derives further parts from its fields in `model_post_init`, for example a model from
    its name. It keeps them in private attributes. A copy with other fields derives them again, and
    so does an unpickled object.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except ValidationError as error:
            # pydantic's frame makes the message hard to find, and its quote of all arguments may
            # contain a model's key.
            raise ValueError(_told(type(self).__name__, error)) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy in which `update` replaces some fields.

        Unlike pydantic's own method, this one validates the fields in `update`.

        Raises:
            ValueError, TypeError, DemurError: The class raises the same error for such fields.
        """
        copied = super().model_copy(deep=deep)
        if not update:
            return copied
        fields = {name: getattr(copied, name) for name in copied.model_fields_set}
        return self._made({**fields, **update})

    @classmethod
    def _made(cls, fields: Mapping[str, Any]) -> Self:
        """Return an object of this class with these fields, by name."""
        return cls(**fields)

    def __getstate__(self) -> dict[Any, Any]:
        """Leave out what `model_post_init` derived, because unpickling derives it again."""
        return {**super().__getstate__(), "__pydantic_private__": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.model_post_init(None)


def _told(name: str, error: ValidationError) -> str:
    """Return pydantic's errors as one line: the class, its arguments, what is wrong with each."""
    found: dict[str, list[str]] = {}
    for one in error.errors(include_url=False, include_input=False):
        # Only the argument is named: the rest of `loc` holds the members of a union.
        where = str(one["loc"][0]) if one["loc"] else ""
        what = str(one.get("ctx", {}).get("error", one["msg"]))
        found.setdefault(where, []).append(what.removeprefix(f"{where}: "))
    told = (
        f"{where}: {' or: '.join(whats)}" if where else "; ".join(whats)
        for where, whats in found.items()
    )
    return f"{name}: {'; '.join(told)}"
