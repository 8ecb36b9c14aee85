"""Decide whether the reply names the entity (stage 3).

Each matcher is a plain function that is named after its rule. It takes the entity and the reply of
stage 2, and decides by the name. `with_share` then takes the share of the requirements into
account. Only `published_em` has a rule of its own about percentages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from demur.evaluators.reverse_validation.denials import names_nobody
from demur.evaluators.reverse_validation.names import trimmed, without_qualifier
from demur.evaluators.reverse_validation.naming import named_in
from demur.evaluators.reverse_validation.parsing import parse_entity
from demur.runtime.prompting import without_delimiters


@dataclass(frozen=True)
class Decision:
    """Describe whether a reply names the entity."""

    same: bool
    reason: str
    """The reason, as a sentence."""


Matcher: TypeAlias = Callable[[str, str], Decision]
"""A function of the entity and the reply."""

_PUBLISHED_LEAST = 80.0
_COUNTS_AS_ALL = ("100%", "perfect match", "meets all", "matches all")
_FOLDED_FROM = 5
_DIGITS = re.compile(r"(\d{1,9})%")
_SHARE_OF_PIECES = 0.65
_MANY = 4
_WORDS_OF_A_NAME = 6
_OR = re.compile(r"\bor\b")
_LINES = re.compile(r"[\n;]")
_OR_COMMAS = re.compile(r"[\n;,]|\bor\b")
_YES_OR_NO = re.compile(
    r"[\W_]*(?:(?:the\s+|my\s+)?(?:final\s+)?answer(?:\s+is)?[\W_]+)?(yes|no)\b(?!\s+and\s+no\b)",
    re.I,
)


def exact(entity: str, reply: str) -> Decision:
    """Decide by whether the reply contains the whole name, as the paper words it (section 4.2).

    Case does not count. A qualifier in brackets, which only Wikipedia writes, is not part of the
    name.

    Raises:
        ValueError: The entity has no name.
    """
    name = without_qualifier(entity)
    return _decided(name, name.casefold() in reply.casefold(), reply)


def published_qg(entity: str, reply: str) -> Decision:
    """Decide as the published results of question generation do.

    The reply must contain the name without its qualifier in brackets. Both are compared in lower
    case.

    Args:
        entity: The name of the entity. Only white space around it is ignored.
        reply: The reply of stage 2.

    Raises:
        ValueError: The entity has no name.
    """
    name = _published_name(entity)
    return _decided(name, name.lower() in reply.lower(), reply)


def published_em(entity: str, reply: str) -> Decision:
    """Decide as the published results of entity matching do.

    A reply that claims a full match in one of four wordings, and does not contain "except", counts
    as 100 percent, whatever else it says. The name must then match in case if it has fewer than
    five characters. In other replies, the first percentage must be at least 80, not the paper's 90.
    If that percentage has a decimal point, only the digits after the point are read: 5 of "87.5%".
    A reply without a percentage is decided by the name alone.

    Args:
        entity: The name of the entity. Only white space around it is ignored.
        reply: The reply of stage 2.

    Raises:
        ValueError: The entity has no name.
    """
    name = _published_name(entity)
    contained = name.lower() in reply.lower()
    if any(words in reply for words in _COUNTS_AS_ALL) and "except" not in reply:
        folded = len(name) >= _FOLDED_FROM
        return _decided(name, contained if folded else name in reply, reply)
    by_name = _decided(name, contained, reply)
    digits = _DIGITS.search(reply)
    if by_name.same and digits and float(digits[1]) < _PUBLISHED_LEAST:
        why = f"{by_name.reason.removesuffix('.')}; of its percentage {digits[1]} is read."
        return Decision(False, why)
    return by_name


def wikibio_name(entity: str, reply: str) -> Decision:
    """Decide as the published results of question generation on WikiBio do: by most of the name.

    The reply must contain more than 65 percent of the name's pieces, so that a middle name may be
    missing. A piece is the text between two spaces. It may be anywhere in the reply, even inside a
    longer word. Only white space around the name is ignored.

    Raises:
        ValueError: The entity has no name.
    """
    name, lowered = _published_name(entity), reply.lower()
    pieces = name.lower().split()
    met = sum(piece in lowered for piece in pieces)
    detail = f": it has {met} of the name's {len(pieces)} pieces"
    return _decided(name, met / len(pieces) > _SHARE_OF_PIECES, reply, detail)


def normalized(entity: str, reply: str) -> Decision:
    """Decide by whether the reply has the name in whole words, in any spelling (`naming.named_in`).

    If the reply has a line "Entity: ...", only that line counts, since a name elsewhere is only
    mentioned. A reply that is nothing but a list of four or more names does not name the entity. A
    list of two or three ("Hoy, or the Isle of Hoy") does if one of them is the entity's. A reply
    that says that it knows no name ("unknown") does not name the entity, whatever the entity is
    called.

    Raises:
        ValueError: The entity has no name.
    """
    name = without_qualifier(entity)
    if gives_none(reply):
        return _decided(name, False, reply, ": it says that it knows none")
    text = _answer_line(reply)
    offered = _offered(text)
    if offered >= _MANY:
        return _decided(name, False, reply, f": it lists {offered} names, and gives none")
    named = named_in(entity, text)
    detail = f', as "{named}"' if named not in (None, name) else ""
    return _decided(name, named is not None, reply, detail)


def gives_none(reply: str) -> bool:
    """Return whether a reply says that it knows no name, such as "unknown" or "Entity: none"."""
    return names_nobody(_answer_line(reply))


MATCHERS: Mapping[str, Matcher] = MappingProxyType(
    {
        "exact": exact,
        "published_qg": published_qg,
        "published_em": published_em,
        "wikibio_name": wikibio_name,
        "normalized": normalized,
    }
)
"""The matchers that ask no model, by name."""


def same_entity(reply: str) -> Decision | None:
    """Read the reply of a model that was asked whether an answer and a name mean the same entity.

    Returns:
        The decision, or None if the reply says neither yes nor no.
    """
    match = _YES_OR_NO.match(without_delimiters(reply))
    if match is None:
        return None
    same = match[1].lower() == "yes"
    verdict = "the same entity" if same else "another entity, or none"
    return Decision(same, f"A model that was asked says that the reply means {verdict}.")


def with_share(by_name: Decision, met: float | None, least: float) -> Decision | None:
    """Return the decision by the name and by the share of the requirements.

    Args:
        by_name: The decision by the name alone.
        met: The share of the requirements that the found entity meets, in [0, 1]; None if the reply
            does not say.
        least: The least share that counts as a match, in [0, 1].

    Returns:
        The decision, or None if the reply names the entity and its share is unknown.
    """
    if not by_name.same:
        return by_name
    if met is None:
        return None
    reason = f"{by_name.reason.removesuffix('.')}; it gives {100 * met:.4g} percent"
    if met < least:
        return Decision(False, f"{reason}, not {100 * least:.4g} or more.")
    return Decision(True, f"{reason}.")


def _answer_line(reply: str) -> str:
    return parse_entity(reply) or reply


def _offered(text: str) -> int:
    """Return how many names a reply lists that is nothing but a list, or 0 for any other reply.

    Commas count only beside an "or", since names and addresses contain commas too.
    """
    separators = _OR_COMMAS if _OR.search(text) else _LINES
    pieces = [piece.split() for piece in separators.split(text) if any(map(str.isalnum, piece))]
    return len(pieces) if max(map(len, pieces), default=0) <= _WORDS_OF_A_NAME else 0


def _published_name(entity: str) -> str:
    whole = trimmed(entity)
    return entity.partition("(")[0].strip() or whole


def _decided(name: str, names_it: bool, reply: str, detail: str = "") -> Decision:
    """Return the decision on a reply that names the entity or does not; `detail` says how."""
    if not reply.strip():
        return Decision(False, f"The reply is empty, so it does not name {name}.")
    verb = "names" if names_it else "does not name"
    return Decision(names_it, f"The reply {verb} {name}{detail}.")
