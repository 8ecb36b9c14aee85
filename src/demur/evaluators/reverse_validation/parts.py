"""Choose the words of a name that are enough to identify who or what has it."""

from __future__ import annotations

import re

from demur._text import words
from demur.evaluators.reverse_validation.names import ARTICLES, PARTICLES, RANKS, SHORT, fold

# The words after one of these say where somebody is from, or what something is a part of.
_LINKS = {"of", "in", "on", "at", "for", "and", "to", "from", "by", "with"}
# Many names begin with one of these. In such a name, the words after the link identify the entity.
_LIKE_OTHERS = {"battle", "siege", "treaty", "adventures", "tale", "legend"}
# Such a word says what the entity is, and is no name.
_KINDS = RANKS | {"saint", "bishop", "cardinal", "general", "mount", "lake", "river"}
# After such a word comes the name of something larger.
_SIDES = {"north", "south", "east", "west", "northern", "southern", "eastern", "western", "central"}
_ROMAN = re.compile(r"[IVXLC]+")


def parts(name: str, person: bool) -> list[str]:
    """Return the folded words that may stand for the whole name.

    For a person, these are the first and the last word. For other entities, it is the last word, if
    it is useful.

    Args:
        name: The name without a qualifier in brackets and without the part after a comma.
        person: Whether it is the name of a person.
    """
    kept = [name[start:end] for _, start, end in words(name)]
    while kept and fold(kept[0]) in ARTICLES:
        del kept[0]
    if kept and fold(kept[0]) in _LIKE_OTHERS:
        del kept[:2]
    links = _LINKS if person else _LINKS | PARTICLES
    end = next((at for at, word in enumerate(kept) if at and fold(word) in links), len(kept))
    del kept[end:]
    while kept and (fold(kept[-1]) in _KINDS or _ROMAN.fullmatch(kept[-1])):
        del kept[-1]
    if not person:
        kept = [] if _SIDES.intersection(map(fold, kept[:-1])) else kept[-1:]
    useful = [
        fold(word)
        for word in kept
        if word[0].isupper() and len(word) >= SHORT and fold(word) not in _KINDS
    ]
    return list(dict.fromkeys([*useful[:1], *useful[-1:]]))
