"""Evaluators whose fields name models, and which find these again where they are unpickled."""

from __future__ import annotations

from abc import ABC
from typing import Any

from typing_extensions import Self

from demur.evaluators.base import Evaluator


class Named(Evaluator, ABC):
    """Pickled by its fields: what `model_post_init` found for them is found again."""

    def __deepcopy__(self, memo: Any = None) -> Self:
        """A copy with the same models, which are not its own."""
        return self.__copy__()

    def __getstate__(self) -> dict[Any, Any]:
        """Leave out what the fields name."""
        return {**super().__getstate__(), "__pydantic_private__": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.model_post_init(None)
