"""Stage 3: does the reply name the entity? Plain decisions, each named for what it is.

Each takes the entity and the reply of stage 2, and decides by the name; `with_share` adds what the
share of the requirements makes of that. Only `published_em` has a rule of its own on percentages.
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
from demur.prompting import without_delimiters


@dataclass(frozen=True)
class Decision:
    """Whether a reply names the entity."""

    same: bool
    reason: str
    """Why, in a sentence."""


Matcher: TypeAlias = Callable[[str, str], Decision]
"""Of the entity and the reply."""

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
    """As the paper words it (section 4.2): the whole name as a string.

    Case does not count, and a bracketed qualifier, which only Wikipedia writes, is no part of the
    name.

    Raises:
        ValueError: The entity has no name.
    """
    name = without_qualifier(entity)
    return _decided(name, name.casefold() in reply.casefold(), reply)


def published_qg(entity: str, reply: str) -> Decision:
    """The decision that the published results of question generation come from.

    The name without its bracketed qualifier stands in the reply, both in lower case.

    Args:
        entity: Its name; of what stands around it only white space is left out.
        reply: What stage 2 said.

    Raises:
        ValueError: The entity has no name.
    """
    name = _published_name(entity)
    return _decided(name, name.lower() in reply.lower(), reply)


def published_em(entity: str, reply: str) -> Decision:
    """The decision that the published results of entity matching come from.

    A reply that claims a full match in one of four wordings, and does not say "except", counts as
    100 percent whatever else it says; then a name of fewer than five characters keeps its case. Of
    other replies the first percentage has to be at least 80, not the paper's 90, and of one with a
    decimal point only the digits after the point are read: 5 of "87.5%". One that gives no
    percentage is not held to any.

    Args:
        entity: Its name; of what stands around it only white space is left out.
        reply: What stage 2 said.

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
    """What the published results of question generation on WikiBio require: most of the name.

    More than 65 percent of its pieces, so that a middle name may be missing. A piece is what stands
    between spaces, and it may stand anywhere in the reply, in a longer word too. Of what stands
    around the name only white space is left out.

    Raises:
        ValueError: The entity has no name.
    """
    name, lowered = _published_name(entity), reply.lower()
    pieces = name.lower().split()
    met = sum(piece in lowered for piece in pieces)
    detail = f": it has {met} of the name's {len(pieces)} pieces"
    return _decided(name, met / len(pieces) > _SHARE_OF_PIECES, reply, detail)


def normalized(entity: str, reply: str) -> Decision:
    """The name however it is written, in whole words: see `naming.named_in`.

    Of a reply with a line "Entity: ..." only that line is looked at: a name in what follows is
    mentioned, not given. A reply that is nothing but a list of four names or more gives none, while
    one of two or three ("Hoy, or the Isle of Hoy") counts if one of them is the entity's. Nor does
    one give a name that says that it knows none ("unknown"), whatever the entity is called.

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
    """Whether a reply says that it knows no name: "unknown", "Entity: none"."""
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
"""The decisions that ask no model, by name."""


def same_entity(reply: str) -> Decision | None:
    """What a model says that was asked whether an answer and a name mean the same entity.

    Returns:
        None where it says neither yes nor no.
    """
    match = _YES_OR_NO.match(without_delimiters(reply))
    if match is None:
        return None
    same = match[1].lower() == "yes"
    verdict = "the same entity" if same else "another entity, or none"
    return Decision(same, f"A model that was asked says that the reply means {verdict}.")


def with_share(by_name: Decision, met: float | None, least: float) -> Decision | None:
    """Return what the share of the requirements makes of the decision by the name alone.

    Args:
        by_name: Whether the reply names the entity.
        met: The share that the found entity meets, in [0, 1]; None where the reply does not say.
        least: The least share that counts as a match, in [0, 1].

    Returns:
        None where the reply names the entity, and its share is not known.
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
    """How many names a reply lists that is nothing but a list; 0 for any other.

    Commas count only beside an "or": they stand in names and addresses too.
    """
    separators = _OR_COMMAS if _OR.search(text) else _LINES
    pieces = [piece.split() for piece in separators.split(text) if any(map(str.isalnum, piece))]
    return len(pieces) if max(map(len, pieces), default=0) <= _WORDS_OF_A_NAME else 0


def _published_name(entity: str) -> str:
    whole = trimmed(entity)
    return entity.partition("(")[0].strip() or whole


def _decided(name: str, names_it: bool, reply: str, detail: str = "") -> Decision:
    """The decision on a reply that names the entity or does not; `detail` says by what."""
    if not reply.strip():
        return Decision(False, f"The reply is empty, so it does not name {name}.")
    verb = "names" if names_it else "does not name"
    return Decision(names_it, f"The reply {verb} {name}{detail}.")
