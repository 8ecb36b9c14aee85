"""Convert text to plain letters, with the way back, so that what looks like a word compares as one.

Some letters have other forms that look the same but are other characters: mathematical bold, full
width, ligatures, Roman numerals. They become plain letters by Unicode's compatibility normalisation
(NFKC), except for forms that carry a meaning; see `_is_styled`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_KEPT = frozenset("！？，：；（）｡､｢｣…‥")
"""The punctuation that separates sentences in some scripts."""
_JAMO = range(0x1160, 0x1200)
"""Korean vowels and finals, which form one sign with the characters before them."""
_SOUND_MARKS = "\uff9e\uff9f"
"""The sound marks of half-width Japanese, which also belong to the character before them."""


@dataclass(frozen=True)
class Plain:
    """Represent a text in plain letters, with the place of each character in the original."""

    text: str
    starts: tuple[int, ...]
    """For each character of `text`, where it begins in the original."""
    ends: tuple[int, ...]
    """For each character of `text`, where it ends in the original."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where the characters `[start, end)` stand in the original."""
        if start >= end:
            at = self.starts[start] if start < len(self.starts) else (self.ends or (0,))[-1]
            return at, at
        return self.starts[start], self.ends[end - 1]


def plain(text: str) -> Plain | None:
    """Return the text in plain letters, or None if it is plain already. Any string is valid."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return None
    # Most signs stay as they are, even in a text in which some are replaced.
    others = {sign for sign in set(text) if _belongs(sign) or _plain(sign) != sign}
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0

    def keep(stop: int) -> None:
        pieces.append(text[done:stop])
        starts.extend(range(done, stop))
        ends.extend(range(done + 1, stop + 1))

    for at in (at for at, sign in enumerate(text) if sign in others):
        if at < done:
            continue  # it is a part of the sign before it, and was handled with that sign
        begin, end = max(done, at - _belongs(text[at])), at + 1
        while end < len(text) and _belongs(text[end]):
            end += 1
        keep(begin)
        pieces.append(piece := _plain(text[begin:end]))
        starts += [begin] * len(piece)
        ends += [end] * len(piece)
        done = end
    keep(len(text))
    changed = "".join(pieces)
    return None if changed == text else Plain(changed, tuple(starts), tuple(ends))


def _belongs(sign: str) -> bool:
    """Return whether a character is a part of the sign before it."""
    return unicodedata.combining(sign) > 0 or ord(sign) in _JAMO or sign in _SOUND_MARKS


# The keys are whole signs, so they are short, except for a sign with many marks.
@lru_cache(maxsize=4096)
def _plain(cluster: str) -> str:
    signs = (unicodedata.normalize("NFKC", one) if _is_styled(one) else one for one in cluster)
    return unicodedata.normalize("NFC", "".join(signs))


def _is_styled(sign: str) -> bool:
    """Return whether a sign is only another form of a plain sign, without a meaning of its own.

    "10²" is not "102", "3½" is not "31⁄2", and "1851①" is not "18511". What Unicode calls a space
    with an accent is not styled either, because people use it as an apostrophe.
    """
    kind, _, _ = unicodedata.decomposition(sign).partition(" ")
    if not kind.startswith("<") or kind == "<fraction>" or sign in _KEPT:
        return False
    said = unicodedata.normalize("NFKC", sign)
    if said.startswith(" ") and len(said) > 1:
        return False
    return kind not in ("<super>", "<sub>", "<circle>") or any(map(str.isalpha, said))
