"""The entity's name in a query: found, also where only a part or a variant stands, and masked.

A query that names what it asks for proves nothing (section 4.2: "label leakage").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from demur.evaluators.reverse_validation.names import TITLES
from demur.text import words

HIDDEN = "[hidden]"
"""What stands in a query in place of a name."""

_QUALIFIER = re.compile(r"\s*\(([^()]*)\)")
_ARTICLES = {"the", "a", "an"}
# What comes after these tells where somebody is from or what something is part of.
_LINKS = {"of", "in", "on", "at", "for", "and", "to", "from", "by", "with"}
# Such a word says what the entity is, and names nothing.
_KINDS = TITLES | {"saint", "bishop", "cardinal", "tsar", "general", "mount", "lake", "river"}
_PERSON = re.compile(r"\b(?:he|she|his|her|him|hers)\b", re.I)
_ROMAN = re.compile(r"[IVXLC]+")
# So many words of some length make a query that says something.
_LEAST_WORDS = 3


@dataclass(frozen=True)
class Masked:
    """A query without the entity's name."""

    text: str
    leaks: tuple[str, ...]
    """What was masked, as it stood there."""

    @property
    def says_something(self) -> bool:
        """Whether enough is left to ask for an entity by."""
        left = self.text.replace(HIDDEN, " ")
        return len({word for word, _, _ in words(left) if len(word) > 3}) >= _LEAST_WORDS


@dataclass(frozen=True)
class _Word:
    text: str
    folded: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()


def fold(text: str) -> str:
    """Without case and diacritics."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def mask(query: str, entity: str, passage: str) -> Masked:
    """Put `[hidden]` where a query names the entity.

    Found are, whatever their case and diacritics: the name, with and without a qualifier in
    brackets, an article, or what stands behind a comma; its words in comma order; its acronym. And
    parts of it, where they stand alone and capitalised and are no ordinary words: of a person each
    name, of anything else the last word.

    Args:
        query: A question or a list of requirements.
        entity: Its name.
        passage: What the query was made from: it shows which words are ordinary, and persons.
    """
    found = _words(query)
    hidden = [False] * len(found)
    for name in names(entity):
        tokens = [word.folded for word in _words(name)]
        for at in _places(tokens, [word.folded for word in found]):
            hidden[at : at + len(tokens)] = [True] * len(tokens)
    acronym = _acronym(entity)
    ordinary = {word.folded for word in [*found, *_words(passage)] if not word.capital}
    parts = _parts(entity, passage) - ordinary
    own = {word.folded for name in names(entity) for word in _words(name)}
    for begin, end in _runs(query, found):
        run = found[begin:end]
        if all(word.folded in own for word in run) and any(word.folded in parts for word in run):
            hidden[begin:end] = [True] * len(run)
    for at, word in enumerate(found):
        hidden[at] = hidden[at] or (acronym is not None and word.text == acronym)
    return _masked(query, found, hidden)


def names(entity: str) -> list[str]:
    """The forms of a name under which an entity goes, the whole one first."""
    bare = _QUALIFIER.sub("", entity).strip(" ,")
    forms = [entity.strip(), bare]
    forms += [inside for inside in _QUALIFIER.findall(entity) if _is_acronym(inside)]
    head, comma, tail = bare.partition(",")
    if comma:
        forms += [head.strip(), f"{tail.strip()} {head.strip()}"]
    forms += [
        form.split(maxsplit=1)[1]
        for form in forms
        if len(form.split()) > 1 and form.split()[0].casefold() in _ARTICLES
    ]
    return [form for form in dict.fromkeys(forms) if any(map(str.isalnum, form))]


def _parts(entity: str, passage: str) -> set[str]:
    """Words of the name that alone name the entity, if they are no ordinary words."""
    head = _QUALIFIER.sub("", entity).partition(",")[0]
    told: list[_Word] = []
    for word in _words(head):
        if word.folded in _LINKS and told:
            break
        told.append(word)
    useful = [
        word.folded
        for word in told
        if word.capital
        and len(word.text) > 2
        and word.folded not in _ARTICLES | _KINDS
        and not _ROMAN.fullmatch(word.text)
    ]
    return set(useful if _PERSON.search(passage) else useful[-1:])


def _acronym(entity: str) -> str | None:
    """The initials of a name of three capitalised words or more."""
    bare = _QUALIFIER.sub("", entity).partition(",")[0]
    initials = "".join(word.text[0] for word in _words(bare) if word.capital)
    return initials if len(initials) >= 3 else None


def _is_acronym(text: str) -> bool:
    return len(text) > 1 and text.isupper() and text.isalnum()


def _words(text: str) -> list[_Word]:
    return [
        _Word(text[start:end], fold(text[start:end]), start, end) for _, start, end in words(text)
    ]


def _places(tokens: Sequence[str], text: Sequence[str]) -> Iterator[int]:
    """Where the tokens stand one after the other; the last one also in the plural."""
    for at in range(len(text) - len(tokens) + 1):
        *before, last = text[at : at + len(tokens)]
        if before == [*tokens[:-1]] and last in (tokens[-1], f"{tokens[-1]}s"):
            yield at


def _runs(query: str, found: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Stretches of capitalised words with only blanks between them: what may be a name."""
    begin: int | None = None
    for at, word in enumerate(found):
        joined = begin is not None and not query[found[at - 1].end : word.start].strip()
        if begin is not None and not (joined and word.capital):
            yield begin, at
            begin = None
        if begin is None and word.capital:
            begin = at
    if begin is not None:
        yield begin, len(found)


def _masked(query: str, found: Sequence[_Word], hidden: Sequence[bool]) -> Masked:
    pieces: list[str] = []
    leaks: list[str] = []
    done = at = 0
    while at < len(found):
        if not hidden[at]:
            at += 1
            continue
        begin = at
        at += 1
        while (
            at < len(found)
            and hidden[at]
            and "\n" not in query[found[at - 1].end : found[at].start]
        ):
            at += 1
        start, end = found[begin].start, found[at - 1].end
        pieces += [query[done:start], HIDDEN]
        leaks.append(query[start:end])
        done = end
    return Masked("".join([*pieces, query[done:]]), tuple(leaks))


def stands_in(entity: str, text: str) -> bool:
    """Whether every word of the entity's name stands in a text, whatever the case and order."""
    bare = {word.folded for word in _words(_QUALIFIER.sub("", entity))} - _ARTICLES
    return bool(bare) and bare <= {word.folded for word in _words(text)}
