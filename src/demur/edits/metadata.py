"""A document's metadata as JSON values that may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from demur._text import replace_surrogates
from demur.edits.addresses import runs, without_user


def shown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON values, without what is not to be shown, at any depth.

    That is addresses that run something, and the user's name and password in others. A value that
    JSON cannot hold is left out: a call does not fail for what nobody asked for.
    """
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        try:
            plain = to_jsonable_python(value, fallback=str, inf_nan_mode="null")
        except Exception:  # bytes in no encoding, a list within itself, a `str` of the user's
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
