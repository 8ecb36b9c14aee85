"""FrozenRunnable: fields that stay as they are, and parts that are found from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableSerializable
from langchain_core.runnables.utils import Input, Output
from pydantic import ConfigDict, ValidationError
from typing_extensions import Self


def fields_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an `__init__`, its `locals()`: each is the field of the same name.

    So a signature is written out for editors, and its options are not listed a third time.
    """
    return {name: value for name, value in arguments.items() if name not in ("self", "__class__")}


class FrozenRunnable(RunnableSerializable[Input, Output]):
    """Base of the evaluators and the guard.

    What a subclass finds from its fields (a model by its name, say) it finds in `model_post_init`
    and keeps in private attributes. A copy with other fields and a pickle find it again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except ValidationError as error:
            # Without pydantic's frame, in which the message is hard to find, and without its
            # quote of all arguments, among which a model's key may be.
            raise ValueError(_told(type(self).__name__, error)) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, with some fields as `update` has them. Unlike pydantic's it validates them.

        Raises:
            ValueError, TypeError, DemurError: As the class itself does for such fields.
        """
        copied = super().model_copy(deep=deep)
        if not update:
            return copied
        fields = {name: getattr(copied, name) for name in copied.model_fields_set}
        return self._made({**fields, **update})

    @classmethod
    def _made(cls, fields: Mapping[str, Any]) -> Self:
        """One with these fields, by name."""
        return cls(**fields)

    def __getstate__(self) -> dict[Any, Any]:
        """Leave out what `model_post_init` found: it is found again on the other side."""
        return {**super().__getstate__(), "__pydantic_private__": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.model_post_init(None)


def _told(name: str, error: ValidationError) -> str:
    """Return pydantic's findings as one line: the class, its arguments, what is wrong with each."""
    found: dict[str, list[str]] = {}
    for one in error.errors(include_url=False, include_input=False):
        # The argument alone: what follows in a place are the members of a union.
        where = str(one["loc"][0]) if one["loc"] else ""
        what = str(one.get("ctx", {}).get("error", one["msg"]))
        found.setdefault(where, []).append(what.removeprefix(f"{where}: "))
    told = (
        f"{where}: {' or: '.join(whats)}" if where else "; ".join(whats)
        for where, whats in found.items()
    )
    return f"{name}: {'; '.join(told)}"
