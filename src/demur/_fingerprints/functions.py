"""What tells functions and prompts from others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from demur._fingerprints.values import as_text, digits, marked_digits

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


def digest(value: object) -> str:
    """Twelve hexadecimal digits that tell a value from others by its `repr`: prompts, say."""
    return digits(_written(value))


def _written(value: object) -> str:
    return _ADDRESS.sub("", repr(value))  # of a part without a `repr` of its own


def prompts_fingerprint(prompts: DataclassInstance, **further: object) -> str:
    """What tells prompts from others, one by one: "joint=#3f0a..., triplets=#9c1b...".

    Args:
        prompts: A dataclass, each of whose fields is a prompt.
        further: What is shown to the model besides, by name.
    """
    named = {field.name: getattr(prompts, field.name) for field in fields(prompts)} | further
    return ", ".join(f"{name}={marked_digits(_written(value))}" for name, value in named.items())


def function_fingerprint(function: Callable[..., Any]) -> str:
    """What tells a function from others, as far as it can be told: its place, not what it does.

    That is its module and name, of a `partial` those of what is called, with digits that tell its
    arguments, of other objects those of the class. Two functions behind one name, such as lambdas
    of a module, look the same: give them an attribute `fingerprint`, a text.
    """
    own = getattr(function, "fingerprint", None)
    if isinstance(own, str) and own:
        return own
    if isinstance(function, partial):
        called, given = function_fingerprint(function.func), [function.args, function.keywords]
        return f"{called}({digits(as_text(given))})" if any(given) else called
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None)  # some of Python's own methods have none
    return f"{module}.{named.__qualname__}" if module else named.__qualname__
