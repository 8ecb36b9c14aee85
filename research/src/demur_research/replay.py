"""Judge recorded replies again: find what each method decides on each passage, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from demur.evaluators.reverse_validation.matching import (
    MATCHERS,
    Decision,
    same_entity,
    with_share,
)
from demur_research.datasets.published import Replies, Variant, first_percentage

Verdicts: TypeAlias = Mapping[str, bool | None]
"""Whether each passage is rejected, by the key of its row; None where that cannot be decided.
Passages without a recorded reply are missing."""

LLM = "llm"
"""The matcher that asks a model; in a replay, what the recorded model said."""
PUBLISHED: Mapping[Variant, str] = {"qg": "published_qg", "em": "published_em"}
"""The matcher that made the published results of each variant on PHD."""
PERCENTAGE = 90.0
"""The least percentage that counts as a match, as in the paper's text (section 4.2)."""


def matchers(variant: Variant) -> list[str]:
    """Return the names of the matchers that can decide on a variant's replies."""
    others = set(PUBLISHED.values()) - {PUBLISHED[variant]}
    return [name for name in (*MATCHERS, LLM) if name not in others]


def replay(
    entities: Mapping[str, str],
    records: Mapping[str, Replies],
    variant: Variant,
    matcher: str,
    percentage: float = PERCENTAGE,
) -> dict[str, bool | None]:
    """Return what a matcher decides on the recorded replies of a variant.

    Args:
        entities: The entity of each passage, by the key of its row. It counts where the record has
            none.
        records: The recorded replies about the passages, by the same keys.
        variant: The variant of Reverse Validation.
        matcher: One of `matchers`.
        percentage: The least percentage, 0 to 100, that entity matching has to give. "published_em"
            has a bound of its own.

    Returns:
        The verdicts. They are empty for `LLM` if no model was asked about any reply.
    """
    said = {key: one for key, one in records.items() if one.reply(variant) is not None}
    if matcher == LLM and all(one.is_same(variant) is None for one in said.values()):
        return {}
    return {
        key: _rejected(one.entity or entities[key], one, variant, matcher, percentage)
        for key, one in said.items()
    }


def _rejected(
    entity: str, said: Replies, variant: Variant, matcher: str, percentage: float
) -> bool | None:
    """Return whether a matcher rejects a passage, or None if the record decides nothing."""
    reply, is_same = said.reply(variant) or "", said.is_same(variant)
    # A model was asked only where the names differ as strings. Equal names were a match without it.
    if matcher == LLM and is_same is None:
        matcher = PUBLISHED[variant]
    decision: Decision | None
    decision = same_entity(is_same or "") if matcher == LLM else MATCHERS[matcher](entity, reply)
    if decision is not None and variant == "em" and matcher != PUBLISHED[variant]:
        decision = with_share(decision, first_percentage(reply), percentage / 100)
    return None if decision is None else not decision.same


def lmvslm(records: Mapping[str, Replies]) -> Verdicts:
    """Return what the recorded verdicts of LMvsLM decide.

    As in the published results, a verdict that does not call the passage correct rejects it.
    """
    verdicts = {key: one.lmvslm_verdict for key, one in records.items()}
    told = {key: said.lower() for key, said in verdicts.items() if said is not None}
    return {key: "incorrect" in said or "correct" not in said for key, said in told.items()}


def zero_shot(records: Mapping[str, Replies]) -> Verdicts:
    """Return the recorded decisions of zero-shot detection, of which nothing else was kept."""
    decisions = {key: one.zero_shot_recorded_decision for key, one in records.items()}
    return {key: said == "non-factual" for key, said in decisions.items() if said is not None}


def selfcheck(records: Mapping[str, Replies]) -> dict[str, float]:
    """Return the recorded inconsistencies by BERTScore; higher means less consistent."""
    scores = {key: one.selfcheck_bertscore for key, one in records.items()}
    return {key: score for key, score in scores.items() if score is not None}
