"""List the public names of demur with their signatures, as `tests/public_names.txt` has them.

    python tools/public_names.py > tests/public_names.txt

A change to that list is a decision, because every name in it is promised to users.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module

PUBLIC = (
    "demur",
    "demur.calibration",
    "demur.evaluators",
    "demur.exemplars",
    "demur.guard",
    "demur.local",
    "demur.observe",
    "demur.runtime.prompting",
    "demur.views.report",
    "demur.scoring",
    "demur.testing",
    "demur.views",
)
"""The modules that users import from. All other modules serve these."""


def listed() -> Iterator[str]:
    """Yield a line for each public name, with its signature."""
    for module in map(import_module, PUBLIC):
        for name in sorted(module.__all__):
            value = getattr(module, name)
            yield f"{module.__name__}.{name}{_signature(value)}"


def _signature(value: object) -> str:
    """Return the parameters with their defaults, without types.

    Each version of Python writes types in its own way.
    """
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return ""
    if inspect.isclass(value) and issubclass(value, (Enum, Exception)):
        return ""
    signature = inspect.signature(value)
    ours = _own_fields(value)
    shown = [
        parameter.replace(annotation=parameter.empty, default=_default(parameter.default))
        for name, parameter in signature.parameters.items()
        if ours is None or name in ours
    ]
    return str(signature.replace(parameters=shown, return_annotation=signature.empty))


class _Long:
    """Stand for a default that is too long for a line."""

    def __repr__(self) -> str:
        return "..."


def _default(value: object) -> object:
    text = repr(value)
    return _Long() if len(text) > 60 or " at 0x" in text else value


def _own_fields(value: object) -> set[str] | None:
    """Return the fields that demur's own classes add to the class of another package."""
    if not hasattr(value, "model_fields") or "__init__" in vars(value):
        return None
    bases = [base for base in value.__mro__ if base.__module__.partition(".")[0] == "demur"]
    return {name for base in bases for name in base.__annotations__}


if __name__ == "__main__":
    print(*listed(), sep="\n")
