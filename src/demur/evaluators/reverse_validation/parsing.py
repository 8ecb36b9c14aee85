"""Read the replies of stages 1 and 2: entity, question, requirements, unmet requirements."""

from __future__ import annotations

import re
from dataclasses import dataclass

from demur.runtime.prompting import without_delimiters

_ENTITY = re.compile(r"^[ \t>*_#-]*entity[*_ \t]*[:\uff1a][*_ \t]*(.*)$", re.I | re.M)
_QUESTION = re.compile(r"^[ \t>*_#-]*question[*_ \t]*[:\uff1a][*_ \t]*", re.I | re.M)
_ITEM = re.compile(
    r"^([ \t]*)[ \t>*_#]*(?:(\d{1,3})[ \t]*[.):](?!\d)|[-*\u2022](?=[ \t]))[*_ \t]*(.*)$", re.M
)
# Models append a list of what is missing: "The passage does not mention these features of it:".
_NOT_SAID = re.compile(r"^(?!\s*(?:\d|[-*\u2022][ \t])).*\bnot\b.*:[*_ \t]*$", re.I | re.M)
_NOT_MET = re.compile(
    r"^[ \t>*_#-]*(?:not|un)[ \t-]*met(?:[ \t]+requirements)?[*_ \t]*[:\uff1a]", re.I | re.M
)
# What small models write after the name, on the same line. A percentage elsewhere belongs to the
# name.
_BEHIND = re.compile(
    r"\bpercentage\b[*_ \t]*[:\uff1a\d]"
    r"|[-\u2013(,;:*_ \t]\d{1,3}(?:[.,]\d{1,9})?[ \t]?%[\W_]*$",
    re.I,
)
_NUMBERS = re.compile(r"\d{1,3}(?:[ \t]*[-\u2013][ \t]*\d{1,3})?(?!\d|[ \t]*%)")
_SEPARATOR = re.compile(r"[ \t]*(?:,|;|and\b|&)*[ \t]*")
_CALLED = re.compile(
    r"(?:the\s+)?(?:requirement|criterion|item|number|feature|no\.|#)s?\s*#?", re.I
)
_MEETS = r"(?:meet|match|satisf(?:y|ie)|fulfil{1,2})"
_EXCEPT = re.compile(
    rf"\b{_MEETS}(?:e?s)? all\b[^.\n]{{0,60}}?\bexcept(?: for| that)? ([^\n]+?)(?=\.(?:\s|$)|$)",
    re.I | re.M,
)
_FAILS = re.compile(
    rf"(?:\bnot|n['\u2019]t) {_MEETS} "
    r"((?:the )?(?:requirement|criterion|item|number)s? #?\d[^.\n]*)",
    re.I,
)
_NOTHING = re.compile(r"\W*(?:none|nothing|no|n/a|-)?\W*", re.I)
_QUOTES = "\"'\u201c\u201d\u2018\u2019*_` \t"

NONE, SEVERAL = "none", "several"


@dataclass(frozen=True)
class Built:
    """Hold what stage 1 wrote."""

    entity: str | None
    """The name of the entity, "none" or "several"; None if the reply has no such line."""
    query: str
    """The question, or the list with numbers from 1, one item a line; empty if there is none."""

    @property
    def entities(self) -> str:
        """Return "none", "several" or "one": how many entities the answer is about."""
        name = (self.entity or "").strip(".").lower()
        return name if name in (NONE, SEVERAL) else "one"


def parse_question(reply: str) -> Built:
    """Read a reply that has a line with the entity and a line with the question.

    Without the word "Question:", the question is the last line of the reply that ends with a
    question mark.
    """
    text = without_delimiters(reply)
    mark = _QUESTION.search(text)
    if mark is not None:
        # Models go on writing after the question, so it ends with its paragraph.
        query = text[mark.end() :].strip().partition("\n\n")[0]
    else:
        questions = [line for line in text.splitlines() if line.rstrip(_QUOTES).endswith("?")]
        query = questions[-1] if questions else ""
    return Built(_entity(text), " ".join(query.split()).strip(_QUOTES))


def parse_requirements(reply: str, truncated: bool = False) -> Built:
    """Read a reply that has a line with the entity and a list, numbered or with bullets.

    Digits in items stay, equal items count once, and the list is numbered anew. Indented bullets
    belong to the item before them if it ends with a colon. A second list, of features that the
    passage does not mention, is left out.

    Args:
        reply: The text that the model wrote.
        truncated: Whether the reply was cut at its limit. The last of several items is then left
            out.
    """
    text = without_delimiters(reply)
    first = _ITEM.search(text)
    end = _NOT_SAID.search(text, first.end()) if first else None
    items = _items(text[: end.start()] if end else text)
    if truncated and len(items) > 1:
        items.pop()
    kept = [*dict.fromkeys(item for item in items if item)]
    return Built(_entity(text), "\n".join(f"{at}. {item}" for at, item in enumerate(kept, 1)))


def _items(text: str) -> list[str]:
    items: list[str] = []
    margin, announces = 0, False
    for indent, number, body in _ITEM.findall(text):
        item = " ".join(body.split()).strip("*_ \t")
        depth = len(indent.expandtabs(4))
        if announces and depth > margin and not number:
            items[-1] += f"{' ' if items[-1].endswith(':') else '; '}{item}"
        else:
            items.append(item)
            margin, announces = depth, item.endswith(":")
    return items


def parse_entity(reply: str) -> str | None:
    """Return the name in a line "Entity: ..."; None if there is no such line, or no name in it."""
    entity = _entity(without_delimiters(reply)) or ""
    name = _BEHIND.split(entity)[0].strip(_QUOTES + "-(,;")
    return name if any(map(str.isalpha, name)) else None


def after_not_met(text: str) -> str | None:
    """Return the text after "Not met:", or None if no line begins so."""
    mark = _NOT_MET.search(text)
    return text[mark.end() :] if mark else None


def parse_unmet(reply: str, requirements: str) -> tuple[str, ...]:
    """Return the requirements that stage 2 reports as not met, in the list's words if possible.

    Args:
        reply: The text that the model wrote. It names requirements by number or in words, after
            "Not met:" or in a sentence, as in "meets all requirements except for the last one".
        requirements: The list that the model was shown.
    """
    text = without_delimiters(reply)
    unmet = after_not_met(text)
    if unmet is None:
        sentence = _EXCEPT.search(text) or _FAILS.search(text)
        return _named(sentence[1].strip(), requirements) if sentence else ()
    rest = unmet.strip()
    if _NOTHING.fullmatch(rest.partition("\n")[0]) and (rest.partition("\n")[0] or not rest):
        return ()
    return _named(rest, requirements)


def _named(text: str, requirements: str) -> tuple[str, ...]:
    items = requirements.splitlines()
    lines = [line.strip(_QUOTES + "-") for line in text.splitlines()]
    numbers = [number for line in lines for number in _leading(_CALLED.sub("", line))]
    named = [items[at - 1].partition(". ")[2] for at in numbers if 0 < at <= len(items)]
    return tuple(dict.fromkeys(named or [line for line in lines if any(map(str.isalpha, line))]))


def _leading(line: str) -> list[int]:
    """Return the numbers at the beginning of a line, with ranges written out."""
    numbers: list[int] = []
    at = 0
    while (number := _NUMBERS.match(line, at)) is not None:
        first, *last = [int(digits) for digits in re.findall(r"\d+", number.group())]
        numbers += range(first, (last[0] if last else first) + 1)
        at = number.end()
        separator = _SEPARATOR.match(line, at)
        at = separator.end() if separator else at
    return numbers


def _entity(text: str) -> str | None:
    match = _ENTITY.search(text)
    name = match[1].strip(_QUOTES) if match else ""
    return name or None
