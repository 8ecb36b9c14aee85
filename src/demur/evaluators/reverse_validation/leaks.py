"""Find the entity's name in a query, even in part or in a variant, and mask it.

A query that contains the name it asks for proves nothing (section 4.2: "label leakage").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from demur._text import words
from demur.evaluators.reverse_validation.names import (
    ARTICLES,
    PARTICLES,
    RANKS,
    SHORT,
    Name,
    abbreviates,
    fold,
    initials,
    places,
    plain,
    trimmed,
    ways,
    without_qualifier,
    words_of,
)
from demur.evaluators.reverse_validation.parts import parts

HIDDEN = "[hidden]"
"""The text that replaces a name in a query."""

_SHORT_FORM = re.compile(r"\s*\((?:(?:abbr|short)[^()\s]*\s+(?:for\s+)?)?([^\W_]{2,10})\)")
_PERSON = re.compile(r"\b(?:he|she|his|her|him|hers)\b", re.I)
_JOINING = re.compile(r"[^\S\n]+|[-\u2010\u2011\u2013'\u2019]")
_STOP = re.compile(r"\.[^\S\n]+")
# A query says something if it has this many different words of more than `SHORT` letters.
_LEAST_WORDS = 3


@dataclass(frozen=True)
class Masked:
    """Hold a query without the entity's name."""

    text: str
    leaks: tuple[str, ...]
    """The texts that were masked, as they were written."""

    @property
    def says_something(self) -> bool:
        """Return whether enough words are left to identify an entity."""
        left = self.text.replace(HIDDEN, " ")
        return len({word for word, _, _ in words(left) if len(word) > SHORT}) >= _LEAST_WORDS


@dataclass(frozen=True)
class _Word:
    text: str
    folded: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()


def mask(query: str, entity: str, passage: str) -> Masked:
    """Replace the entity's name in a query with `[hidden]`.

    Case and diacritics do not count. These texts are found:

    - The ways to write the name (`names.ways`), the whole name with its qualifier, and the part
      before a comma.
    - Its acronyms: its initials, or an acronym that the passage introduces in brackets.
    - Parts of the name, if they are capitalised and are not ordinary words. For a person, these are
      the first and the last name, alone or after a title, and the last name at the beginning of
      another name, as in "Bell Foundation". For anything else, it is the last word alone.

    Another name that contains such a part ("Graham Bell") stays.

    Args:
        query: A question or a list of requirements.
        entity: The name of the entity.
        passage: The text that the query was made from. It shows which words are ordinary, and
            whether the entity is a person.

    Raises:
        ValueError: The entity has no name.
    """
    query_words, passage_words = _words(query), _words(passage)
    names = _names(entity)
    acronyms = _acronyms(entity, names, passage, passage_words)
    hidden = [word.text in acronyms for word in query_words]
    folded = [word.folded for word in query_words]
    for name in names:
        for begin, end in places(name.folded, folded):
            first = query_words[begin]
            if not name.cased_alone or first.capital or first.text == name.words[0].written:
                hidden[begin:end] = [True] * (end - begin)
    ordinary = {word.folded for word in (*query_words, *passage_words) if not word.capital}
    head = without_qualifier(entity).partition(",")[0]
    alone = parts(head, person=_PERSON.search(passage) is not None)
    family = set(alone[1:]) - ordinary
    own = {word.folded for word in _words(without_qualifier(entity))}
    for begin, end in _runs(query, query_words):
        run = [word.folded for word in query_words[begin:end]]
        if own.issuperset(run) and not ordinary.issuperset(set(alone) & set(run)):
            hidden[begin:end] = [True] * len(run)
        elif family & set(run) and (own | RANKS).issuperset(run):
            for at, word in enumerate(run, start=begin):
                hidden[at] = hidden[at] or word in own
        elif family & {run[0], run[0].removesuffix("s")}:
            hidden[begin] = True
    return _masked(query, query_words, hidden)


def stands_in(entity: str, text: str) -> bool:
    """Return whether a text has every word of the entity's name, in any case and order."""
    if not any(map(str.isalnum, entity)):
        return False
    name = {word.folded for word in _words(without_qualifier(entity))} - ARTICLES
    return bool(name) and name <= {word.folded for word in _words(text)}


def _names(entity: str) -> list[Name]:
    """Return the ways to write the name, the whole name, and the part before a comma."""
    head, _, _ = without_qualifier(entity).partition(",")
    others = [Name(words_of(plain(text))) for text in (trimmed(entity), head)]
    return [name for name in (*ways(entity), *others) if name.words]


def _acronyms(
    entity: str, names: Sequence[Name], passage: str, passage_words: Sequence[_Word]
) -> set[str | None]:
    """Return the initials of the name, and its acronyms in brackets in the passage."""
    head = without_qualifier(entity).partition(",")[0]
    forms = {initials(text) for text in (entity, head) if any(map(str.isalnum, text))}
    for name in names:
        for _, end in places(name.folded, [word.folded for word in passage_words]):
            match = _SHORT_FORM.match(passage, passage_words[end - 1].end)
            if match and match[1].isupper() and abbreviates(match[1], entity):
                forms.add(match[1])
    return forms


def _words(text: str) -> list[_Word]:
    return [
        _Word(text[start:end], fold(text[start:end]), start, end) for _, start, end in words(text)
    ]


def _runs(query: str, query_words: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Yield the runs of capitalised words, with the words that join them, which may be names."""
    at = 0
    while at < len(query_words):
        last = at
        if query_words[at].capital:
            for after in range(at + 1, len(query_words)):
                word = query_words[after]
                if not _joined(query, query_words[after - 1], word):
                    break
                if word.capital:
                    last = after
                elif word.folded not in PARTICLES:
                    break
            yield at, last + 1
        at = last + 1


def _joined(query: str, before: _Word, after: _Word) -> bool:
    between = query[before.end : after.start]
    short = len(before.text) <= SHORT and _STOP.fullmatch(between)
    return bool(short or _JOINING.fullmatch(between))


def _masked(query: str, query_words: Sequence[_Word], hidden: Sequence[bool]) -> Masked:
    pieces: list[str] = []
    leaks: list[str] = []
    done = at = 0
    while at < len(query_words):
        begin = at
        at += 1
        if not hidden[begin]:
            continue
        while (
            at < len(query_words)
            and hidden[at]
            and "\n" not in query[query_words[at - 1].end : query_words[at].start]
        ):
            at += 1
        start, end = query_words[begin].start, query_words[at - 1].end
        # A bracket that opens in the name is masked up to its closing bracket.
        end += query[start:end].count("(") > query[start:end].count(")") and query[end:].startswith(
            ")"
        )
        pieces += [query[done:start], HIDDEN]
        leaks.append(query[start:end])
        done = end
    return Masked("".join([*pieces, query[done:]]), tuple(leaks))
