"""Data and scripts inside a page: nothing that they hold can end the element they are in."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from demur._text import replace_surrogates

# Inside <script>, where HTML's own escapes are not read; and what reorders the text around it.
_SIGNS = (*map(ord, "<>&"), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {sign: f"\\u{sign:04x}" for sign in _SIGNS}


def as_data(value: Any) -> Markup:
    """A value as JSON for `<script type="application/json">`.

    Raises:
        ValueError: It holds NaN or infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(replace_surrogates(text).translate(_ESCAPES))


def packed(values: Sequence[str]) -> bytes:
    """A list of texts as JSON, compressed, for `<script type="text/plain">`."""
    text = replace_surrogates(json.dumps(values, ensure_ascii=False))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0))


def as_code(script: str) -> Markup:
    """A script as it can stand in `<script>`.

    Raises:
        ValueError: It holds what would end that element, or change how it is read.
    """
    lower = script.lower()
    for part in ("</script", "<script", "<!--", "\r", "\0"):
        if part in lower:
            raise ValueError(f"a script holds {part!r} and cannot be put into a page")
    return Markup(script)


def digest(script: str) -> str:
    """By which a content security policy knows a script."""
    hashed = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"
