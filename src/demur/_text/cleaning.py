"""Make texts harmless before they are shown or encoded."""

from __future__ import annotations

import re

_SURROGATE = re.compile(r"[\ud800-\udfff]")
# These direction marks reorder the text around them: a passage could look like its own opposite.
_REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_VISIBLE: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(32)},  # ESC becomes the picture of ESC, and so on
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *map(ord, _REORDERING)), 0xFFFD),
    **{ord(sign): "\n" for sign in "\r\n\v\f\x85\u2028\u2029"},
    ord("\t"): " ",
    0x7F: 0x2421,
}


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate, which no encoding can carry, by one U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def harmless(text: str) -> str:
    """Return `text` with every control character made visible, and with plain line breaks.

    Nothing is removed, so no text can hide another text.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def one_line(text: str) -> str:
    """Return `text` made harmless, with each run of white space as a single space."""
    return " ".join(harmless(text).split())
