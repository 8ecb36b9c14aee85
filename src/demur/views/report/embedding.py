"""Put data and scripts into a page, so that their content cannot end the element around them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from demur._text import replace_surrogates

# Characters that are escaped: HTML's own escapes are not read inside <script>, and some characters
# reorder the text around them.
_SIGNS = (*map(ord, "<>&"), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {sign: f"\\u{sign:04x}" for sign in _SIGNS}


def as_data(value: Any) -> Markup:
    """Return a value as JSON for `<script type="application/json">`.

    Raises:
        ValueError: The value holds NaN or infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(replace_surrogates(text).translate(_ESCAPES))


def packed(values: Sequence[str]) -> bytes:
    """Return a list of texts as compressed JSON in Base64, for `<script type="text/plain">`."""
    text = replace_surrogates(json.dumps(values, ensure_ascii=False))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0))


def as_code(script: str) -> Markup:
    """Return a script as it can stand in `<script>`.

    Raises:
        ValueError: The script holds text that would end that element or change how it is read.
    """
    lower = script.lower()
    for part in ("</script", "<script", "<!--", "\r", "\0"):
        if part in lower:
            raise ValueError(f"a script holds {part!r} and cannot be put into a page")
    return Markup(script)


def digest(script: str) -> str:
    """Return the hash by which a content security policy recognises a script."""
    hashed = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"
