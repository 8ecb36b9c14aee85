"""Text in plain letters, with the way back: what a reader takes for a word is compared as one.

Letters come in other forms (bold of mathematics, full width, ligatures, Roman numerals), which are
read alike and are other characters. Here they become the plain ones, as Unicode's compatibility
normalisation (NFKC) has it, but for those forms that say something: see `_is_styled`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_KEPT = frozenset("！？，：；（）｡､｢｣…‥")
"""Punctuation by which sentences of some scripts are told apart."""
_JAMO = range(0x1160, 0x1200)
"""Vowels and finals, which are one sign with what stands before them."""
_SOUND_MARKS = "\uff9e\uff9f"
"""Of half-width Japanese, so too."""


@dataclass(frozen=True)
class Plain:
    """A text in plain letters."""

    text: str
    starts: tuple[int, ...]
    """For each of its characters where that begins in the original, ..."""
    ends: tuple[int, ...]
    """... and where it ends."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters `[start, end)` stand in the original."""
        if start >= end:
            at = self.starts[start] if start < len(self.starts) else (self.ends or (0,))[-1]
            return at, at
        return self.starts[start], self.ends[end - 1]


def plain(text: str) -> Plain | None:
    """The text in plain letters; None where it is already. Any string will do."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return None
    # Most signs stay as they are, also in texts of which some do not.
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
            continue  # a part of the sign before it, and done with that
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
    """Whether it is a part of the sign before it."""
    return unicodedata.combining(sign) > 0 or ord(sign) in _JAMO or sign in _SOUND_MARKS


# Whole signs; one with many marks is the only one that is long.
@lru_cache(maxsize=4096)
def _plain(cluster: str) -> str:
    signs = (unicodedata.normalize("NFKC", one) if _is_styled(one) else one for one in cluster)
    return unicodedata.normalize("NFC", "".join(signs))


def _is_styled(sign: str) -> bool:
    """Whether a sign is a plain one in another form, which says nothing more.

    "10²" is not "102", nor "3½" "31⁄2", nor "1851①" "18511"; and what Unicode calls a space with an
    accent is written as an apostrophe.
    """
    kind, _, _ = unicodedata.decomposition(sign).partition(" ")
    if not kind.startswith("<") or kind == "<fraction>" or sign in _KEPT:
        return False
    said = unicodedata.normalize("NFKC", sign)
    if said.startswith(" ") and len(said) > 1:
        return False
    return kind not in ("<super>", "<sub>", "<circle>") or any(map(str.isalpha, said))
