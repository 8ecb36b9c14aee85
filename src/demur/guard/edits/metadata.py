"""Turn a document's metadata into JSON values that may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from demur._text import replace_surrogates
from demur.guard.edits.addresses import runs, without_user


def shown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as JSON values, without values that must not be shown, at any depth.

    Addresses that run code are left out, and so are user names and passwords in other addresses. A
    value that JSON cannot hold is left out too, so that a call does not fail because of metadata
    that nobody asked for.
    """
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        try:
            plain = to_jsonable_python(value, fallback=str, inf_nan_mode="null")
        except Exception:  # undecodable bytes, a list that holds itself, a user's failing `__str__`
            continue
        if not _is_address(plain):
            found[replace_surrogates(str(key))] = _harmless(plain)
    return found


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return without_user(replace_surrogates(value))
    if isinstance(value, list):
        return [_harmless(one) for one in value if not _is_address(one)]
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if not _is_address(one)}
        return {replace_surrogates(str(key)): _harmless(one) for key, one in kept.items()}
    return value


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and runs(value)
