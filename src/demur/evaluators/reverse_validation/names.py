"""List the ways to write the name of an entity, and split a text into words to search."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

_QUOTES = '"\u201c\u201d\u201e\u00ab\u00bb`'
_BRACKETS = re.compile(r"\(([^()]*)\)")
# Two initials or more with their dots: "J.R.R.", "J. R. R.", "U.S.".
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.[ ]?){2,}")
_POSSESSIVE = re.compile(r"['\u2019]s(?![^\W_])", re.I)
_WORD = re.compile(r"[^\W_]+")
# One blank only, since two blanks are left where a line break was.
_JOINING = re.compile(r"[^\S\n]|[-\u2010\u2011\u2013]")
_DIACRITICS = re.compile(r"[\u0300-\u036f]")
# Letters that Unicode does not decompose into another letter and a mark.
_LETTERS = str.maketrans(
    {
        **{"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ħ": "h", "Ħ": "H"},
        **{"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th"},
        **{"ı": "i", "'": "", "\u2019": "", "\u02bb": ""},
    }
)
TITLES = {
    *("mr", "mrs", "ms", "dr", "prof", "professor", "sir", "dame", "lord", "lady", "king", "queen"),
    *("emperor", "empress", "prince", "princess", "pope", "president", "count", "countess", "duke"),
    *("duchess", "baron", "baroness", "earl", "captain"),
}
RANKS = TITLES | {
    *("archduke", "archduchess", "elector", "margrave", "landgrave", "marquess", "marquis"),
    *("viscount", "sultan", "shah", "tsar", "tsarina", "tsarevich", "pharaoh"),
}
ARTICLES = {"a", "an", "the"}
PARTICLES = {"de", "del", "della", "di", "da", "du", "la", "von", "van", "der", "den"}
SMALL = ARTICLES | PARTICLES | {"of", "and", "for", "in", "on", "at", "to", "by"}
SHORT = 3
"""A name of at most this many letters may be a common word. The initials of a name are used from
this many words on."""


@dataclass(frozen=True)
class Word:
    """Hold a word of a text in plain letters."""

    written: str
    folded: str
    joined: bool
    """Whether only a blank or a hyphen is between this word and the word before."""
    start: int
    """The offset in that text at which the word begins."""
    end: int


@dataclass(frozen=True)
class Name:
    """Hold one way to write a name."""

    words: tuple[Word, ...]
    cased: bool = False
    """Whether its words must begin with capitals in the text."""
    without_article: bool = False
    """Whether an article was left out. The rest may then be a part of another, longer name."""

    @property
    def folded(self) -> list[str]:
        """Return its words, folded."""
        return [word.folded for word in self.words]

    @property
    def cased_alone(self) -> bool:
        """Return whether it is one word that may be a common word in another case: "Us", "ERA"."""
        written = self.words[0].written
        short = len(written) <= SHORT and written.lower() != written.upper()
        return len(self.words) == 1 and (written.isupper() or short)


def trimmed(entity: str) -> str:
    """Return the name without the white space, quotes and commas that data sets leave at its ends.

    Raises:
        ValueError: Nothing is left of the name.
    """
    name = entity.strip(f",; \t\r\n{_QUOTES}")
    if not any(character.isalnum() for character in name):
        raise ValueError(f"entity: expected the name of one entity, got {entity!r}: pass its name")
    return name


def without_qualifier(entity: str) -> str:
    """Return the trimmed name up to its first bracket: `Metis` of `Metis (mythology)`."""
    whole = trimmed(entity)
    head = whole.partition("(")[0]
    return trimmed(head) if any(character.isalnum() for character in head) else whole


def fold(text: str) -> str:
    """Return the text without case, diacritics and apostrophes."""
    return plain(text).casefold()


def initials(entity: str) -> str | None:
    """Return the initials of a name of three words or more, or None; small words do not count."""
    large = [
        word for word in words_of(plain(without_qualifier(entity))) if word.folded not in SMALL
    ]
    short = "".join(word.written[0] for word in large).upper()
    return short if len(large) >= SHORT else None


def abbreviates(short: str, name: str) -> bool:
    """Return whether the name contains the letters of `short`, in the same order."""
    letters = iter(fold(name))
    return all(letter in letters for letter in fold(short))


def ways(entity: str) -> list[Name]:
    """Return the ways to write a name, with the fullest first."""
    base = without_qualifier(entity)
    words = words_of(plain(base))
    names = [Name(words)] if words else []
    head, comma, tail = (part.strip() for part in base.partition(","))
    first, second = words_of(plain(head)), words_of(plain(tail))
    if comma and first and second:
        if any(word.folded in RANKS for word in second):
            names.append(Name(first, cased=True))
        elif "," not in tail and len(second) <= 3:
            names.append(Name(second + first))
    for name in list(names):
        if name.words[0].folded in ARTICLES and len(name.words) > 1:
            cased = name.cased or len(name.words) == 2
            names.append(Name(name.words[1:], cased, without_article=True))
    for name in list(names):
        at = 0
        while at < len(name.words) - 1 and name.words[at].folded in TITLES:
            at += 1
        if at:
            names.append(Name(name.words[at:], cased=True))
    for inner in _BRACKETS.findall(trimmed(entity)):
        short = words_of(plain(inner))
        if len(short) == 1 and short[0].written.isupper() and abbreviates(inner, base):
            names.append(Name(short))
    return names


def plain(text: str) -> str:
    """Return the text in plain letters, with its case and its punctuation."""
    decomposed = unicodedata.normalize("NFKD", text)
    bare = unicodedata.normalize("NFKC", _DIACRITICS.sub("", decomposed))
    together = _INITIALS.sub(lambda match: re.sub(r"[. ]", "", match[0]) + " ", bare)
    return _POSSESSIVE.sub("", together).translate(_LETTERS)


def words_of(plain: str) -> tuple[Word, ...]:
    """Return the words of a text in plain letters."""
    words: list[Word] = []
    end = 0
    for match in _WORD.finditer(plain):
        joined = bool(words) and _JOINING.fullmatch(plain, end, match.start()) is not None
        words.append(Word(match[0], match[0].casefold(), joined, *match.span()))
        end = match.end()
    return tuple(words)


def places(name: Sequence[str], words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of words that spells the name or its plural."""
    wanted, text = "".join(name), "".join(words)
    starts = [0, *accumulate(map(len, words))]
    ends: dict[int, int] = {}
    for at, stop in enumerate(starts[1:], start=1):
        ends.setdefault(stop, at)
    for start, (word, offset) in enumerate(zip(words, starts, strict=False)):
        if word and wanted and text.startswith(wanted, offset):
            stop = offset + len(wanted)
            plural = len(wanted) > SHORT and text.startswith("s", stop)
            end = ends.get(stop, ends.get(stop + 1) if plural else None)
            if end is not None:
                yield start, end
