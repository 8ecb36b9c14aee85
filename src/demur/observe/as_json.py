"""Write any value as JSON, whatever its texts and its documents' metadata hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from demur._text import replace_surrogates


def as_json(value: BaseModel) -> str:
    """Return a value as one line of JSON, without NaN; values that JSON cannot hold become strings.

    Lone surrogates and bytes that are not UTF-8 become U+FFFD, since pydantic refuses them.
    """
    try:
        return value.model_dump_json(fallback=str)
    except PydanticSerializationError:
        return json.dumps(_plain(value.model_dump()), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """Return a value made of the types of JSON."""
    if isinstance(value, Mapping):
        return {_name(key): _plain(held) for key, held in value.items()}
    if isinstance(value, (list, tuple, AbstractSet)):
        return [_plain(held) for held in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _name(value)


def _name(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="replace")
    if isinstance(value, date):
        return value.isoformat()
    return replace_surrogates(str(value))
