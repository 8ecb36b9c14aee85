"""Stage 3: does the reply name the entity? Plain decisions, each named for what it is.

Each takes the entity, the reply of stage 2, and the least percentage of requirements that counts
as a match; without one, percentages are not looked at. A reply that gives no percentage is not
held to one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from demur.evaluators.reverse_validation.names import trimmed, without_qualifier
from demur.evaluators.reverse_validation.naming import named_in
from demur.evaluators.reverse_validation.parsing import parse_entity
from demur.models.isolation import without_delimiters


@dataclass(frozen=True)
class Decision:
    """Whether a reply names the entity."""

    same: bool
    reason: str
    """Why, in a sentence."""
    percentage: float | None = None
    """The first percentage in the reply, in percent; None where it gives none."""


Matcher: TypeAlias = Callable[[str, str, float | None], Decision]
"""Of the entity, the reply, and the least percentage in percent, or None."""

# A number of more digits is no percentage, and one of hundreds of digits no float.
_PERCENTAGE = re.compile(
    r"(?<![\d.,])(\d{1,4}(?:[.,]\d{1,9})?)\s{0,3}(?:[%\uff05\u066a]|per\s?cent\b)", re.I
)
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


def percentages(reply: str) -> tuple[float, ...]:
    """All percentages that stand in a reply, in percent and in its order."""
    return tuple(float(found.replace(",", ".")) for found in _PERCENTAGE.findall(reply))


def exact(entity: str, reply: str, least: float | None) -> Decision:
    """As the paper words it (section 4.2): the whole name as a string, and a percentage.

    Case does not count, and a bracketed qualifier, which only Wikipedia writes, is no part of the
    name. The paper's `least` is 90.

    Raises:
        ValueError: The entity has no name, or `least` is not in [0, 100].
    """
    name = without_qualifier(entity)
    return _decided(name, name.casefold() in reply.casefold(), reply, least)


def published_qg(entity: str, reply: str, least: float | None) -> Decision:
    """The decision that the published results of question generation come from.

    The name without its bracketed qualifier stands in the reply, both in lower case.

    Args:
        entity: Its name; of what stands around it only white space is left out.
        reply: What stage 2 said.
        least: Not looked at.

    Raises:
        ValueError: The entity has no name.
    """
    name = _published_name(entity)
    return _decided(name, name.lower() in reply.lower(), reply, None)


def published_em(entity: str, reply: str, least: float | None) -> Decision:
    """The decision that the published results of entity matching come from.

    A reply that claims a full match in one of four wordings, and does not say "except", counts as
    100 percent whatever else it says; then a name of fewer than five characters keeps its case. Of
    other replies the first percentage has to be at least 80, not the paper's 90, and of one with a
    decimal point only the digits after the point are read: 5 of "87.5%".

    Args:
        entity: Its name; of what stands around it only white space is left out.
        reply: What stage 2 said.
        least: Not looked at.

    Raises:
        ValueError: The entity has no name.
    """
    name = _published_name(entity)
    contained = name.lower() in reply.lower()
    if any(words in reply for words in _COUNTS_AS_ALL) and "except" not in reply:
        folded = len(name) >= _FOLDED_FROM
        return _decided(name, contained if folded else name in reply, reply, None)
    by_name = _decided(name, contained, reply, None)
    digits = _DIGITS.search(reply)
    if by_name.same and digits and float(digits[1]) < _PUBLISHED_LEAST:
        why = f"{by_name.reason.removesuffix('.')}; of its percentage {digits[1]} is read."
        return replace(by_name, same=False, reason=why)
    return by_name


def wikibio_name(entity: str, reply: str, least: float | None) -> Decision:
    """What the published results of question generation on WikiBio require: most of the name.

    More than 65 percent of its pieces, so that a middle name may be missing. A piece is what stands
    between spaces, and it may stand anywhere in the reply, in a longer word too. Of what stands
    around the name only white space is left out.

    Raises:
        ValueError: The entity has no name, or `least` is not in [0, 100].
    """
    name, lowered = _published_name(entity), reply.lower()
    pieces = name.lower().split()
    found = sum(piece in lowered for piece in pieces)
    told = f": it has {found} of the name's {len(pieces)} pieces"
    return _decided(name, found / len(pieces) > _SHARE_OF_PIECES, reply, least, told)


def normalized(entity: str, reply: str, least: float | None) -> Decision:
    """The name however it is written, in whole words: see `naming.named_in`.

    Of a reply with a line "Entity: ..." only that line is looked at: a name in what follows is
    mentioned, not given. A reply that is nothing but a list of four names or more gives none, while
    one of two or three ("Hoy, or the Isle of Hoy") counts if one of them is the entity's.

    Raises:
        ValueError: The entity has no name, or `least` is not in [0, 100].
    """
    name = without_qualifier(entity)
    said = parse_entity(reply) or reply
    offered = _offered(said)
    if offered >= _MANY:
        return _decided(name, False, reply, least, f": it lists {offered} names, and gives none")
    found = named_in(entity, said)
    told = f', as "{found}"' if found not in (None, name) else ""
    return _decided(name, found is not None, reply, least, told)


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
    said = _YES_OR_NO.match(without_delimiters(reply))
    if said is None:
        return None
    same = said[1].lower() == "yes"
    verdict = "the same entity" if same else "another entity, or none"
    return Decision(same, f"A model that was asked says that the reply means {verdict}.")


def at_least(least: float | None, reply: str, by_name: Decision) -> Decision:
    """What the percentage in a reply makes of the decision by the name alone.

    Args:
        least: In percent; None where percentages are not looked at.
        reply: What stage 2 said.
        by_name: Whether it names the entity.

    Raises:
        ValueError: `least` is not in [0, 100].
    """
    if least is not None and not (math.isfinite(least) and 0 <= least <= 100):
        raise ValueError(f"least: expected a percentage in [0, 100], or None, got {least!r}")
    given = next(iter(percentages(reply)), None)
    if least is None or not by_name.same:
        return replace(by_name, percentage=given)
    said = by_name.reason.removesuffix(".")
    if given is None:
        return Decision(True, f"{said}; it gives no percentage.")
    if given < least:
        return Decision(False, f"{said}; it gives {given:g} percent, not {least:g} or more.", given)
    return Decision(True, f"{said}; it gives {given:g} percent.", given)


def _offered(said: str) -> int:
    """How many names a reply lists that is nothing but a list; 0 for any other.

    Commas count only beside an "or": they stand in names and addresses too.
    """
    separators = _OR_COMMAS if _OR.search(said) else _LINES
    pieces = [piece.split() for piece in separators.split(said) if any(map(str.isalnum, piece))]
    return len(pieces) if max(map(len, pieces), default=0) <= _WORDS_OF_A_NAME else 0


def _published_name(entity: str) -> str:
    whole = trimmed(entity)
    return entity.partition("(")[0].strip() or whole


def _decided(
    name: str, names_it: bool, reply: str, least: float | None, told: str = ""
) -> Decision:
    """The decision on a reply that names the entity or does not; `told` says by what."""
    if not reply.strip():
        by_name = Decision(False, f"The reply is empty, so it does not name {name}.")
    else:
        verb = "names" if names_it else "does not name"
        by_name = Decision(names_it, f"The reply {verb} {name}{told}.")
    return at_least(least, reply, by_name)
