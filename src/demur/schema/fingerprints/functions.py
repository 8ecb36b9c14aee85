"""Make fingerprints of functions and prompts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from demur.schema.fingerprints.values import as_text, digits, marked_digits

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


def digest(value: object) -> str:
    """Return twelve hexadecimal digits that identify a value, such as prompts, by its `repr`."""
    return digits(_written(value))


def _written(value: object) -> str:
    return _ADDRESS.sub("", repr(value))  # an object without its own `repr` shows its address


def prompts_fingerprint(prompts: DataclassInstance) -> str:
    """Return a text that identifies prompts one by one: "joint=#3f0a..., triplets=#9c1b...".

    Args:
        prompts: A dataclass in which each field is a prompt.
    """
    named = {field.name: getattr(prompts, field.name) for field in fields(prompts)}
    return ", ".join(f"{name}={marked_digits(_written(value))}" for name, value in named.items())


def function_fingerprint(function: Callable[..., Any]) -> str:
    """Return a text that identifies a function by its module and name, not by what it does.

    A `partial` is identified by the function that it calls, with digits for its arguments. An
    object that is no function is identified by its class. Two functions with the same module and
    name, such as two lambdas of a module, look the same. Give them an attribute `fingerprint` with
    a text.
    """
    own = getattr(function, "fingerprint", None)
    if isinstance(own, str) and own:
        return own
    if isinstance(function, partial):
        called, given = function_fingerprint(function.func), [function.args, function.keywords]
        return f"{called}({digits(as_text(given))})" if any(given) else called
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None)  # some of Python's own methods have no module
    return f"{module}.{named.__qualname__}" if module else named.__qualname__
