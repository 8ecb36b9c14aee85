"""Whether a text names an entity, in whatever way the name is written. No model, no network."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_QUOTES = '"\u201c\u201d\u201e\u00ab\u00bb`'
_BRACKETS = re.compile(r"\(([^()]*)\)")
# Two initials or more with their dots: "J.R.R.", "J. R. R.", "U.S.".
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.[ ]?){2,}")
_POSSESSIVE = re.compile(r"['\u2019]s(?![^\W_])", re.I)
_WORD = re.compile(r"[^\W_]+")
# Two blanks are what is left of a line break.
_JOINING = re.compile(r"[^\S\n]|[-\u2010\u2011\u2013]")
_DIACRITICS = re.compile(r"[\u0300-\u036f]")
# Letters of which Unicode does not say that they are another one with a mark.
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
_RANKS = TITLES | {
    *("archduke", "archduchess", "elector", "margrave", "landgrave", "marquess", "marquis"),
    *("viscount", "sultan", "shah", "tsar", "tsarina", "tsarevich", "pharaoh"),
}
_ARTICLES = {"a", "an", "the"}
_SMALL = _ARTICLES | {
    *("of", "and", "for", "in", "on", "at", "to", "by", "de", "la", "du", "von"),
    "van",
}
_COMPANY = {"inc", "corp", "corporation", "company", "co", "ltd", "limited", "llc", "plc", "gmbh"}
_LEAST_INITIALS = 3
_SHORT = 3


@dataclass(frozen=True)
class _Word:
    written: str
    folded: str
    joined: bool
    """Whether only a blank or a hyphen stands between it and the word before."""


@dataclass(frozen=True)
class _Name:
    """One way to write a name."""

    words: tuple[_Word, ...]
    cased: bool = False
    """Whether its words have to begin with capitals in the text."""


def trimmed(entity: str) -> str:
    """The name without the white space, quotes and commas at its ends that data sets leave there.

    Raises:
        ValueError: Nothing is left of it.
    """
    found = entity.strip(f",; \t\r\n{_QUOTES}")
    if not any(character.isalnum() for character in found):
        raise ValueError(f"entity: expected the name of one entity, got {entity!r}: pass its name")
    return found


def without_qualifier(entity: str) -> str:
    """The trimmed name up to its first bracket: `Metis` of `Metis (mythology)`."""
    whole = trimmed(entity)
    head = whole.partition("(")[0]
    return trimmed(head) if any(character.isalnum() for character in head) else whole


def named_in(entity: str, text: str) -> str | None:
    """How `text` names the entity; None where it does not.

    Case, diacritics, punctuation and the spaces between words do not count, nor do a bracketed
    qualifier, an article or a title before the name or a rank after it, the order around a comma
    ("Smith, John"), whether a name is written out or by its initials, and an s at its end.

    Words count as wholes: "Ann" is not in "Annapolis". A name of one word does not stand where it
    is part of a longer name ("Draco" in "Draco Malfoy"), and one that is in capitals or has up to
    three letters keeps its case, unless it is all that the text says.

    Args:
        entity: Its name.
        text: Where to look.

    Raises:
        ValueError: The entity has no name.
    """
    names = _names(entity)
    plain = _plain(text)
    words = _words(plain)
    for name in names:
        for start, end in _places(name, words):
            if _stands(name, words, start, end):
                return " ".join(word.written for word in words[start:end])
    base = _plain(without_qualifier(entity))
    return _turned(base, plain) or _by_initials(base, words) or _without_spaces(base, plain)


def _names(entity: str) -> list[_Name]:
    """The ways to write a name, the fullest first."""
    base = without_qualifier(entity)
    words = _words(_plain(base))
    found = [_Name(words)] if words else []
    head, comma, tail = (part.strip() for part in base.partition(","))
    first, second = _words(_plain(head)), _words(_plain(tail))
    if comma and first and second:
        if any(word.folded in _RANKS for word in second):
            found.append(_Name(first, cased=True))
        elif "," not in tail and len(second) <= 3:
            found.append(_Name(second + first))
    for name in list(found):
        if name.words[0].folded in _ARTICLES and len(name.words) > 1:
            found.append(_Name(name.words[1:], cased=name.cased or len(name.words) == 2))
    for name in list(found):
        at = 0
        while at < len(name.words) - 1 and name.words[at].folded in TITLES:
            at += 1
        if at:
            found.append(_Name(name.words[at:], cased=True))
    for inner in _BRACKETS.findall(trimmed(entity)):
        short = _words(_plain(inner))
        if len(short) == 1 and short[0].written.isupper() and _abbreviates(short[0], words):
            found.append(_Name(short))
    return found


def _abbreviates(short: _Word, words: Sequence[_Word]) -> bool:
    """Whether its letters stand in the words, in their order."""
    letters = iter("".join(word.folded for word in words))
    return all(letter in letters for letter in short.folded)


def _plain(text: str) -> str:
    """The text in plain letters, with its case and its punctuation."""
    decomposed = unicodedata.normalize("NFKD", text)
    bare = unicodedata.normalize("NFKC", _DIACRITICS.sub("", decomposed))
    together = _INITIALS.sub(lambda found: re.sub(r"[. ]", "", found[0]) + " ", bare)
    return _POSSESSIVE.sub("", together).translate(_LETTERS)


def _words(plain: str) -> tuple[_Word, ...]:
    found: list[_Word] = []
    end = 0
    for match in _WORD.finditer(plain):
        joined = bool(found) and _JOINING.fullmatch(plain, end, match.start()) is not None
        found.append(_Word(match[0], match[0].casefold(), joined))
        end = match.end()
    return tuple(found)


def _places(name: _Name, words: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Where words that together spell the name, or its plural, begin and end."""
    wanted = "".join(word.folded for word in name.words)
    numbers = {wanted, f"{wanted}s"} if len(wanted) > _SHORT else {wanted}
    for start in range(len(words)):
        spelled = ""
        for end in range(start, len(words)):
            spelled += words[end].folded
            if spelled in numbers:
                yield start, end + 1
            if len(spelled) > len(wanted) or not wanted.startswith(spelled):
                break


def _stands(name: _Name, words: Sequence[_Word], start: int, end: int) -> bool:
    """Whether the name is meant in this place, and not a word or a longer name like it."""
    found = words[start:end]
    if len(found) == len(words) and not name.cased:
        return True
    if name.cased and not all(_capital(w) for w in found if w.folded not in _SMALL):
        return False
    if len(name.words) > 1:
        return True
    wanted = name.words[0].written
    if (wanted.isupper() or len(wanted) <= _SHORT) and found[0].written != wanted:
        return False
    before = words[start - 1] if start and found[0].joined else None
    after = words[end] if end < len(words) and words[end].joined else None
    return not _capital(found[0]) or not (
        (before is not None and _lengthens(before, _SMALL | _RANKS))
        or (after is not None and _lengthens(after, _SMALL | _COMPANY))
    )


def _lengthens(neighbor: _Word, harmless: set[str]) -> bool:
    return _capital(neighbor) and neighbor.folded not in harmless


def _capital(word: _Word) -> bool:
    return word.written[0].isupper()


def _turned(base: str, plain: str) -> str | None:
    """The family name first, with a comma after it."""
    words = [word.folded for word in _words(base)]
    if len(words) < 2 or "," in base:
        return None
    last, first = re.escape(words[-1]), r"\W+".join(map(re.escape, words[:-1]))
    found = re.search(rf"(?<![^\W_]){last},\s+{first}(?![^\W_])", plain.casefold())
    return found[0] if found else None


def _by_initials(base: str, words: Sequence[_Word]) -> str | None:
    """A long name by its initials, or the long name of which the entity's are the initials."""
    name = [word for word in _words(base) if word.folded not in _SMALL]
    initials = "".join(word.written[0] for word in name).upper()
    if len(name) >= _LEAST_INITIALS:
        return next((word.written for word in words if word.written == initials), None)
    if len(name) != 1 or not name[0].written.isupper() or len(name[0].written) < _LEAST_INITIALS:
        return None
    wanted = name[0].written
    large = [at for at, word in enumerate(words) if word.folded not in _SMALL]
    for at in range(len(large) - len(wanted) + 1):
        places = large[at : at + len(wanted)]
        spelled = "".join(words[place].written[0] for place in places)
        if spelled == wanted and all(_one_run(words, a, b) for a, b in pairwise(places)):
            return " ".join(word.written for word in words[places[0] : places[-1] + 1])
    return None


def _one_run(words: Sequence[_Word], start: int, end: int) -> bool:
    return all(word.joined for word in words[start + 1 : end + 1])


def _without_spaces(base: str, plain: str) -> str | None:
    """A name in a script without case, which often is one without spaces too."""
    letters = [character for character in base if character.isalpha()]
    if not letters or any(c.lower() != c.upper() for c in letters):
        return None
    return base if base.casefold() in plain.casefold() else None
