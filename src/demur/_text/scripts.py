"""Find the words of plain text in any script, as offsets into the original string."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

WORD_SIGNS = (
    r"\w\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u096f\u0971-\u0dff"
)
"""The signs of words, for a class of a pattern: letters, digits, and the marks that Hebrew, Arabic
and the scripts of India put on letters. These marks are no letters for a pattern."""
_WORD = re.compile(rf"[{WORD_SIGNS}]+")
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]"
)
"""The pattern of a sign that counts as a word.

These scripts have no spaces between words, or, like Korean, write particles together with the
words.
"""


def words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of `text`, case-folded, each with its span."""
    spaced = not UNSPACED.search(text)
    for match in _WORD.finditer(text):
        if spaced or not UNSPACED.search(match.group()):
            yield match.group().casefold(), match.start(), match.end()
        else:
            for at, sign in enumerate(match.group(), match.start()):
                yield sign.casefold(), at, at + 1


def word_set(text: str) -> frozenset[str]:
    """Return the distinct words of `text`, case-folded."""
    if UNSPACED.search(text):
        return frozenset(word for word, _, _ in words(text))
    return frozenset(map(str.casefold, _WORD.findall(text)))


@lru_cache(maxsize=4096)
def script_of(letter: str) -> str:
    """Return the script of a letter, as Unicode's names begin: "LATIN", "CJK"."""
    return unicodedata.name(letter, "LATIN").split()[0].split("-")[0]
