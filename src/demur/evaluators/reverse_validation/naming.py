"""Decide whether a text names an entity, however the name is written.

No model is called, and the network is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from demur.evaluators.reverse_validation.denials import denied
from demur.evaluators.reverse_validation.names import (
    RANKS,
    SHORT,
    SMALL,
    Name,
    Word,
    initials,
    places,
    plain,
    ways,
    without_qualifier,
    words_of,
)

_COMPANY = {"inc", "corp", "corporation", "company", "co", "ltd", "limited", "llc", "plc", "gmbh"}
_MOST_INITIALS = 10


def named_in(entity: str, text: str) -> str | None:
    """Return how `text` names the entity, or None if it does not.

    Some differences do not count: case, diacritics, punctuation, and the spaces between words. The
    text may leave out a qualifier in brackets, an article or a title before the name, and a rank
    after it. It may turn the order around a comma ("Smith, John"), write the name out or by its
    initials, and add an s at its end.

    Only whole words count: "Ann" is not in "Annapolis". A name of one word, or a name without its
    article, does not count inside a longer name ("Draco" in "Draco Malfoy"). A single word in
    capitals or of up to three letters must match in case, unless it is the whole text.

    A name does not count if English words deny it. They can be directly before it ("not Draco",
    "rather than Draco") or after it ("Draco does not meet all", "Draco, but it fails", "Draco is
    wrong").

    Args:
        entity: The name of the entity.
        text: The text to search.

    Raises:
        ValueError: The entity has no name.
    """
    bare = plain(text)
    words = words_of(bare)
    spans = [*_written_out(entity, words), *_by_initials(entity, words)]
    # A part of a denied name does not count either: "Albert" of "not Albert, Count of Hoy".
    refused: set[int] = set()
    for start, end in spans:
        if denied(bare, words[start].start, words[end - 1].end):
            refused.update(range(start, end))
    for start, end in spans:
        if not refused.issuperset(range(start, end)):
            return " ".join(word.written for word in words[start:end])
    base = plain(without_qualifier(entity))
    return _turned(base, bare) or _without_spaces(base, bare)


def _written_out(entity: str, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    folded = [word.folded for word in words]
    for name in ways(entity):
        for start, end in places(name.folded, folded):
            if _stands(name, words, start, end):
                yield start, end


def _stands(name: Name, words: Sequence[Word], start: int, end: int) -> bool:
    """Return whether the place has the name itself, not a common word or a longer name."""
    span_words = words[start:end]
    if len(span_words) == len(words) and not name.cased:
        return True
    if name.cased and not all(_capital(w) for w in span_words if w.folded not in SMALL):
        return False
    if len(name.words) > 1 and not name.without_article:
        return True
    if name.cased_alone and span_words[0].written != name.words[0].written:
        return False
    before = words[start - 1] if start and span_words[0].joined else None
    after = words[end] if end < len(words) and words[end].joined else None
    return not _capital(span_words[0]) or not (
        (before is not None and _lengthens(before, SMALL | RANKS))
        or (after is not None and _lengthens(after, SMALL | _COMPANY))
    )


def _lengthens(neighbor: Word, harmless: set[str]) -> bool:
    return _capital(neighbor) and neighbor.folded not in harmless


def _capital(word: Word) -> bool:
    return word.written[0].isupper()


def _turned(base: str, bare: str) -> str | None:
    """Return a match of the family name first, with a comma after it, or None."""
    words = [word.folded for word in words_of(base)]
    if len(words) < 2 or "," in base:
        return None
    last, first = re.escape(words[-1]), r"\W+".join(map(re.escape, words[:-1]))
    folded = bare.casefold()
    for match in re.finditer(rf"(?<![^\W_]){last},\s+{first}(?![^\W_])", folded):
        if not denied(folded, *match.span()):
            return match[0]
    return None


def _by_initials(entity: str, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield the places of a long name's initials, or of the long name of an abbreviation."""
    short = initials(entity)
    if short is not None:
        yield from ((at, at + 1) for at, word in enumerate(words) if word.written == short)
        return
    name = [word.written for word in words_of(plain(without_qualifier(entity)))]
    if len(name) != 1 or not name[0].isupper() or not SHORT <= len(name[0]) <= _MOST_INITIALS:
        return
    large = [at for at, word in enumerate(words) if word.folded not in SMALL]
    for at in range(len(large) - len(name[0]) + 1):
        spots = large[at : at + len(name[0])]
        spelled = "".join(words[spot].written[0] for spot in spots)
        if spelled == name[0] and all(_one_run(words, a, b) for a, b in pairwise(spots)):
            yield spots[0], spots[-1] + 1


def _one_run(words: Sequence[Word], start: int, end: int) -> bool:
    return all(word.joined for word in words[start + 1 : end + 1])


def _without_spaces(base: str, bare: str) -> str | None:
    """Return the name if the text contains it, for scripts without case.

    Such scripts often have no spaces between words either.
    """
    letters = [character for character in base if character.isalpha()]
    if not letters or any(c.lower() != c.upper() for c in letters):
        return None
    return base if base.casefold() in bare.casefold() else None
