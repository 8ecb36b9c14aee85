"""Describe an answer's sources for its readers, for HTML and the terminal alike.

The description follows from an attempt, so traces and records do not store it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from demur._text import places
from demur.guard import Attempt
from demur.guard.edits import Citation, Place, cited, places_of

_NAMES = {"code": "block of code"}
"""The names of the kinds of parts, if the kind itself is not a good name."""


@dataclass(frozen=True)
class Part:
    """Describe a part of an answer that has sources."""

    at: int
    """The offset in the text where the marks go."""
    name: str
    """The name of the part: "sentence 1", or the path of a value."""
    quotes: Mapping[int, Sequence[str]]
    """The passages that support the part, by the number of the source."""


@dataclass(frozen=True)
class Source:
    """Describe a document that supports an answer."""

    number: int
    title: str
    url: str | None
    """The document's http or https address; None if it has none."""
    quotes: Sequence[str]
    """The passages, each once, in the order in which the answer uses them."""
    paths: Sequence[str] = ()
    """The paths of the values that it supports in a structured answer; empty for prose."""


@dataclass(frozen=True)
class Sourced:
    """Hold an answer with its sources."""

    text: str
    """The answer without the chain's own citations, which may be wrong."""
    parts: Sequence[Part] = ()
    """The parts that have a source, in order."""
    sources: Sequence[Source] = ()
    """The sources, sorted by number; a document that supports nothing is not a source."""


def sourced(attempt: Attempt) -> Sourced:
    """Return the answer of an attempt with the documents that support its sentences."""
    answer = attempt.answer
    left = cited(answer, places_of(answer), attempt.evaluations, attempt.contexts, "list")
    if not left.citations:
        return Sourced(left.text)
    return Sourced(
        left.text,
        _parts(left.text, left.citations),
        [_source(*of_one) for _, of_one in sorted(_by_number(left.citations).items())],
    )


def marked(attempt: Attempt) -> str:
    """Return the answer of an attempt with marks such as [1]; a structured answer gets no marks."""
    answer = attempt.answer
    parts = places_of(answer)
    return cited(answer, parts, attempt.evaluations, attempt.contexts, "numbers").text


def _by_number(citations: Sequence[Citation]) -> dict[int, list[Citation]]:
    found: dict[int, list[Citation]] = {}
    for citation in citations:
        found.setdefault(citation.number, []).append(citation)
    return found


def _source(first: Citation, *more: Citation) -> Source:
    every = (first, *more)
    quotes = dict.fromkeys(citation.quote for citation in every)
    paths = dict.fromkeys(citation.path for citation in every if citation.path is not None)
    return Source(first.number, first.title, first.url, list(quotes), list(paths))


def _parts(text: str, citations: Sequence[Citation]) -> list[Part]:
    known = sorted(places_of(text), key=lambda place: place.start)
    names = [*_names(known)]
    of_parts: dict[tuple[int, int], list[Citation]] = {}
    for citation in citations:
        of_parts.setdefault((citation.end, citation.start), []).append(citation)
    parts: list[Part] = []
    for (end, start), of_part in sorted(of_parts.items()):
        at = max(0, bisect_right(known, start, key=lambda place: place.start) - 1)
        quotes = {
            number: list(dict.fromkeys(citation.quote for citation in of_one))
            for number, of_one in sorted(_by_number(of_part).items())
        }
        name = of_part[0].path or (names[at] if names else "the answer")
        is_code = bool(known) and known[at].kind == "code"
        parts.append(Part(_behind(text, end, is_code), name, quotes))
    return parts


def _names(known: Sequence[Place]) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for place in known:
        counts[place.kind] += 1
        yield f"{_NAMES.get(place.kind, place.kind)} {counts[place.kind]}"


def _behind(text: str, end: int, is_code: bool) -> int:
    """Return the offset for marks: behind the quotes of a value, or behind a block of code."""
    if is_code:
        closing = text.find("\n", end) + 1
        behind = text.find("\n", closing) if closing else end
        return len(text) if behind < 0 else behind
    return end + (places(text) is not None and text[end : end + 1] == '"')
