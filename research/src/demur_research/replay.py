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
from demur_research.datasets.published import Replies, Variant, first_percentage

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
    """Whether a matcher rejects a passage; None where what was recorded decides nothing."""
    reply, is_same = said.reply(variant) or "", said.is_same(variant)
    # A model was asked where the names, as strings, differ; elsewhere their equality has decided.
    if matcher == LLM and is_same is None:
        matcher = PUBLISHED[variant]
    decision: Decision | None
    decision = same_entity(is_same or "") if matcher == LLM else MATCHERS[matcher](entity, reply)
    if decision is not None and variant == "em" and matcher != PUBLISHED[variant]:
        decision = with_share(decision, first_percentage(reply), percentage / 100)
    return None if decision is None else not decision.same


def lmvslm(records: Mapping[str, Replies]) -> Verdicts:
    """What the recorded verdicts of LMvsLM decide.

    As the published results have it, whatever does not call the passage correct rejects it.
    """
    verdicts = {key: one.lmvslm_verdict for key, one in records.items()}
    told = {key: said.lower() for key, said in verdicts.items() if said is not None}
    return {key: "incorrect" in said or "correct" not in said for key, said in told.items()}


def zero_shot(records: Mapping[str, Replies]) -> Verdicts:
    """What was recorded of zero-shot detection, of which only decisions were kept."""
    decisions = {key: one.zero_shot_recorded_decision for key, one in records.items()}
    return {key: said == "non-factual" for key, said in decisions.items() if said is not None}


def selfcheck(records: Mapping[str, Replies]) -> dict[str, float]:
    """The recorded inconsistencies by BERTScore; higher means less consistent."""
    scores = {key: one.selfcheck_bertscore for key, one in records.items()}
    return {key: score for key, score in scores.items() if score is not None}
