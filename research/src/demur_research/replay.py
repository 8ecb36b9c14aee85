"""Recorded replies judged again: what each method decides on each passage, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from demur.evaluators.reverse_validation.matching import (
    MATCHERS,
    Decision,
    same_entity,
    with_share,
)
from demur_research.datasets.published import Exchange, Replies, Variant, first_percentage

Verdicts: TypeAlias = Mapping[str, bool | None]
"""By the key of the passage's row, whether it is rejected; None where that cannot be decided. A
passage of which nothing is recorded is missing."""

LLM = "llm"
"""The matcher that asks a model: here, what the recorded one said."""
PUBLISHED: Mapping[Variant, str] = {"qg": "published_qg", "em": "published_em"}
"""The decision that the published results of a variant come from, on PHD."""
PERCENTAGE = 90.0
"""The least that counts as a match, as the paper's text has it (section 4.2)."""


def matchers(variant: Variant) -> list[str]:
    """Those that decide on a variant's replies."""
    others = set(PUBLISHED.values()) - {PUBLISHED[variant]}
    return [name for name in (*MATCHERS, LLM) if name not in others]


def replay(
    entities: Mapping[str, str],
    records: Mapping[str, Replies],
    variant: Variant,
    matcher: str,
    percentage: float = PERCENTAGE,
) -> dict[str, bool | None]:
    """What a matcher makes of the recorded replies of a variant.

    Args:
        entities: What each passage is about, by the key of its row, where its record has no name.
        records: What was said of the passages.
        variant: Of Reverse Validation.
        matcher: One of `matchers`.
        percentage: The least that entity matching has to give; "published_em" has its own.

    Returns:
        The verdicts. There are none by `LLM` where no model was asked about any reply.
    """
    said = {key: one.exchanges[variant] for key, one in records.items() if variant in one.exchanges}
    if matcher == LLM and all(exchange.is_same is None for exchange in said.values()):
        return {}
    return {
        key: rejected(records[key].entity or entities[key], one, variant, matcher, percentage)
        for key, one in said.items()
    }


def rejected(
    entity: str, exchange: Exchange, variant: Variant, matcher: str, percentage: float
) -> bool | None:
    """Whether a matcher rejects a passage; None where what was recorded decides nothing.

    Args:
        entity: What the passage is about.
        exchange: What was said in stage 2.
        variant: Of Reverse Validation.
        matcher: One of `matchers`.
        percentage: The least that entity matching has to give; "published_em" has its own.
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
        decision = with_share(decision, first_percentage(exchange.reply), percentage / 100)
    return None if decision is None else not decision.same


def lmvslm(records: Mapping[str, Replies]) -> Verdicts:
    """What the recorded verdicts of LMvsLM decide.

    As the published results have it, whatever does not call the passage correct rejects it.
    """
    told = {key: one.lmvslm.lower() for key, one in records.items() if one.lmvslm is not None}
    return {key: "incorrect" in said or "correct" not in said for key, said in told.items()}


def zero_shot(records: Mapping[str, Replies]) -> Verdicts:
    """What was recorded of zero-shot detection, of which only decisions were kept."""
    return {
        key: one.zero_shot == "non-factual"
        for key, one in records.items()
        if one.zero_shot is not None
    }


def selfcheck(records: Mapping[str, Replies]) -> dict[str, float]:
    """The recorded inconsistencies by BERTScore; higher means less consistent."""
    return {key: one.selfcheck for key, one in records.items() if one.selfcheck is not None}
