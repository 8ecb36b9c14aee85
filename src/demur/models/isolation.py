"""Keep the text under judgement apart from the instructions of the one who judges it."""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets

_SECRET = os.environ.get("DEMUR_SECRET", "").encode() or secrets.token_bytes(32)


# A delimiter alone on its line, or what a model makes of it.
_DELIMITER = re.compile(r"\s*</?[a-z]+-[a-z2-7]{10}>\s*")


def isolate(tag: str, text: str) -> str:
    """Put `text` between delimiters that it cannot forge.

    The delimiters hold an HMAC of the text under a secret of this process, so no text can contain
    its own, and the same text always has the same one: equal requests stay equal, for caches and
    for the reuse of a prefix. Set `DEMUR_SECRET` to have them equal from process to process too, as
    a cache on disk wants.

    Args:
        tag: What the text is, such as "reference".
        text: Any text.
    """
    code = hmac.digest(_SECRET, f"{tag}\0{text}".encode(errors="replace"), "sha256")
    mark = f"{tag}-{base64.b32encode(code[:10]).decode()[:10].lower()}"
    return f"<{mark}>\n{text}\n</{mark}>"


def without_delimiters(reply: str) -> str:
    """A model's reply without such delimiters, which small models repeat around what they write."""
    return _DELIMITER.sub("\n", reply).strip()
