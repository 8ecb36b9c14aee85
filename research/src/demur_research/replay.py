"""Recorded replies judged again: what each method decides on each passage, without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from demur.evaluators.reverse_validation.matching import (
    MATCHERS,
    Decision,
    same_entity,
    with_share,
)
from demur_research.datasets.published import (
    VARIANTS,
    Exchange,
    Passage,
    PublishedReplies,
    Replies,
    Variant,
)

Verdicts: TypeAlias = Mapping[str, bool | None]
"""By the passage's key, whether it is rejected; None where that cannot be decided. A passage that
is missing has no record."""

LLM = "llm"
"""The matcher that asks a model: here, what the recorded one said."""
KNOWN = (*MATCHERS, LLM)
PUBLISHED: dict[Variant, str] = {"qg": "published_qg", "em": "published_em"}
PERCENTAGE = 90.0
"""The least that counts as a match, as the paper's text has it (section 4.2)."""
# A number of more digits is no percentage, and one of hundreds of digits no float.
_PERCENTAGE = re.compile(
    r"(?<![\d.,])(\d{1,4}(?:[.,]\d{1,9})?)\s{0,3}(?:[%\uff05\u066a]|per\s?cent\b)", re.I
)
ALL_FALSE, LMVSLM, ZERO_SHOT, SELFCHECK = "all-false", "lmvslm", "zero-shot", "selfcheck-bertscore"


@dataclass(frozen=True)
class Cost:
    """What a passage cost on the mean, retries included."""

    tokens: float
    """Of prompts and replies."""
    seconds: float


@dataclass(frozen=True)
class Judging:
    """The verdicts of one method."""

    method: str
    matcher: str | None
    """None for methods that match no names."""
    verdicts: Verdicts
    cost: Cost | None = None
    """None where that was not recorded."""


def replay(
    passages: Sequence[Passage],
    records: PublishedReplies,
    percentage: float = PERCENTAGE,
    selfcheck: float | None = None,
) -> list[Judging]:
    """What every method of which something is recorded decides, with every matcher.

    Args:
        passages: The data.
        records: What was said of it.
        percentage: The least that entity matching has to give; "published_em" has its own.
        selfcheck: Passages that score above it are rejected; None leaves the method out.
    """
    found = list(_reverse_validation(passages, records, percentage))
    return [*found, *_baselines(passages, records, selfcheck)]


def chosen(judged: Sequence[Judging], matcher: str | None) -> list[Judging]:
    """Those with the matcher, or all.

    Raises:
        ValueError: The matcher is not known, or there is nothing recorded that it decides on.
    """
    if matcher is None:
        return list(judged)
    if matcher not in KNOWN:
        raise ValueError(f"unknown matcher {matcher!r}: expected one of {', '.join(KNOWN)}")
    found = [one for one in judged if one.matcher == matcher]
    if not found:
        raise ValueError(f"the records hold no reply that {matcher!r} decides on")
    return found


def _reverse_validation(
    passages: Sequence[Passage], records: PublishedReplies, percentage: float
) -> Iterator[Judging]:
    for variant in VARIANTS:
        said = {key: one.exchanges.get(variant) for key, one in records.by_key.items()}
        known = {key: exchange for key, exchange in said.items() if exchange is not None}
        asked = any(exchange.is_same is not None for exchange in known.values())
        for name in matchers(variant, asked) if known else []:
            verdicts = {
                passage.key: rejected(
                    *(passage.entity, known[passage.key], variant, name, percentage),
                    met=first_percentage(known[passage.key].reply),
                )
                for passage in passages
                if passage.key in known
            }
            yield Judging(variant, name, verdicts)


def matchers(variant: Variant, asked: bool = False) -> list[str]:
    """Those that decide on a variant's replies; `llm` where a model was asked."""
    others = set(PUBLISHED.values()) - {PUBLISHED[variant]}
    return [name for name in KNOWN if name not in others and (asked or name != LLM)]


def first_percentage(reply: str) -> float:
    """Return the first percentage anywhere in a reply, as a share; 1 where it gives none.

    A reading for replies to the publishers' prompts alone, which ask for no line with the figure:
    the published decision holds no reply to a percentage that it does not give.
    """
    found = _PERCENTAGE.search(reply)
    return min(float(found[1].replace(",", ".")) / 100, 1.0) if found else 1.0


def rejected(
    entity: str,
    exchange: Exchange,
    variant: Variant,
    matcher: str,
    percentage: float,
    met: float | None,
) -> bool | None:
    """Whether a matcher rejects a passage; None where what was recorded decides nothing.

    Args:
        entity: What the passage is about.
        exchange: What was said in stage 2.
        variant: Of Reverse Validation.
        matcher: Its name.
        percentage: The least that entity matching has to give; "published_em" has its own.
        met: The share of the requirements that the reply gives, in [0, 1]; None: it gives none.
    """
    # A model was asked where the names, as strings, differ; elsewhere their equality has decided.
    if matcher == LLM and exchange.is_same is None:
        matcher = PUBLISHED[variant]
    decision: Decision | None
    if matcher == LLM:
        decision = same_entity(exchange.is_same or "")
    else:
        decision = MATCHERS[matcher](entity, exchange.reply)
    if decision is not None and variant == "em" and matcher != PUBLISHED[variant]:
        decision = with_share(decision, met, percentage / 100)
    return None if decision is None else not decision.same


def _baselines(
    passages: Sequence[Passage], records: PublishedReplies, selfcheck: float | None
) -> Iterator[Judging]:
    yield Judging(ALL_FALSE, None, {passage.key: True for passage in passages})
    readings: dict[str, Callable[[Replies], bool | None]] = {
        LMVSLM: lambda one: None if one.lmvslm is None else _says_incorrect(one.lmvslm),
        ZERO_SHOT: lambda one: None if one.zero_shot is None else one.zero_shot == "non-factual",
        SELFCHECK: lambda one: (
            None if one.selfcheck is None or selfcheck is None else one.selfcheck > selfcheck
        ),
    }
    for method, read in readings.items():
        told = {key: read(one) for key, one in records.by_key.items()}
        verdicts = {key: verdict for key, verdict in told.items() if verdict is not None}
        if verdicts:
            yield Judging(method, None, verdicts)


def _says_incorrect(verdict: str) -> bool:
    """As the published results have it: whatever does not call the passage correct rejects it."""
    lowered = verdict.lower()
    return "incorrect" in lowered or "correct" not in lowered
