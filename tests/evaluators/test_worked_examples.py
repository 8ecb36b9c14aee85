"""Test each method on the worked examples of its source, with scripted replies.

Where the source decides differently from demur, the test says so and gives the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from demur import FEWL, ClaimLabel, Evaluation, Failure, RefChecker, ReverseValidation, Sample
from demur.evaluators import summarize
from support.fakes import ScriptedModel, isolated
from support.fewl import store
from support.worked_examples import (
    HOCKEY,
    IBUPROFEN,
    IBUPROFEN_LABELS,
    JORDAN,
    LACRIMOSA,
    MAXIMILIAN,
    SEEDS,
    SEEDS_PAIRS,
    SEEDS_RIGHT,
    SEEDS_WRONG,
    WEISS,
    Case,
)

# --- RefChecker: ibuprofen -----------------------------------------------------------------------


def checker(extracted: Sequence[str], label: Callable[[str], ClaimLabel], **options: Any) -> Any:
    """Return a RefChecker whose model extracts these claims and labels a claim by its text."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            return "\n".join(extracted)
        if stage == "claim":
            return label(isolated("claim", messages))
        lines = [line.split(". ", 1) for line in isolated("claims", messages).splitlines()]
        return "\n".join(f"{at}. {label(claim)}" for at, claim in lines)

    return RefChecker(ScriptedModel(script=script), **{"claims": "triplets", **options})


def of_the_source(claim: str) -> ClaimLabel:
    """Label a claim by the last thing that it names, or by the worst of several."""
    labels = [
        label for triplet, label in IBUPROFEN_LABELS.items() if triplet.split('"')[-2] in claim
    ]
    worst_first = (ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL, ClaimLabel.ENTAILMENT)
    return next(label for label in worst_first if label in labels)


def ibuprofen(**options: Any) -> Evaluation:
    found = checker([*IBUPROFEN_LABELS], of_the_source, **options).invoke(IBUPROFEN)
    assert isinstance(found, Evaluation)
    return found


@pytest.mark.parametrize("mode", ["joint", "per_claim"])
def test_ibuprofens_seven_claims_have_the_labels_and_the_distribution_of_the_source(
    mode: str,
) -> None:
    found = ibuprofen(checker=mode)
    assert [claim.label for claim in found.claims] == [*IBUPROFEN_LABELS.values()]
    assert [claim.triplet[-1] for claim in found.claims if claim.triplet] == [
        triplet.split('"')[-2] for triplet in IBUPROFEN_LABELS
    ]
    # The seven triplets cover everything that is said.
    assert found.details["fallback_claims"] == []
    shares = summarize([found])
    assert (shares.entailment, shares.neutral, shares.contradiction) == (1 / 7, 5 / 7, 1 / 7)


@pytest.mark.parametrize(
    ("options", "label", "passed"),
    [
        ({"aggregation": "strict"}, ClaimLabel.CONTRADICTION, False),
        ({"aggregation": "major"}, ClaimLabel.NEUTRAL, False),
        ({"aggregation": "soft", "threshold": 1 / 7}, ClaimLabel.ENTAILMENT, True),
    ],
)
def test_ibuprofen_is_aggregated_to_one_label(
    options: dict[str, Any], label: ClaimLabel, passed: bool | None
) -> None:
    """Aggregate where the source stops; only a threshold of 1/7 would let this answer pass."""
    found = ibuprofen(**options)
    assert (found.label, found.passed, found.score) == (label, passed, 1 / 7)


# --- RefChecker: Andre Weiss ---------------------------------------------------------------------


def by_number(claim: str) -> ClaimLabel:
    """Support a claim that says both who is meant and how long; "11 years" alone is not enough."""
    whole = "Weiss" in claim and "Dijon" in claim and "11 years" in claim
    return ClaimLabel.ENTAILMENT if whole else ClaimLabel.NEUTRAL


def test_a_short_answers_claim_carries_the_question_that_the_extractor_read() -> None:
    triplet = '("Andre Weiss at the University of Dijon", "taught for", "11 years")'
    evaluator = checker([triplet], by_number)
    found = evaluator.invoke(WEISS)
    (claim,) = found.claims
    assert claim.triplet == ("Andre Weiss at the University of Dijon", "taught for", "11 years")
    assert (found.label, found.score, found.passed) == (ClaimLabel.ENTAILMENT, 1, True)
    asked = evaluator.model.requests[0]
    assert isolated("question", asked) == WEISS.question
    assert isolated("answer", asked) == "11 years"


# --- FEWL: watermelon seeds ----------------------------------------------------------------------

KNOWS, BELIEVES = SEEDS_RIGHT, SEEDS_WRONG
"""The answers of the two references."""
ALIKE, APART = 0.9, 0.2


def harmless(text: str) -> bool:
    return text == SEEDS_RIGHT or text in SEEDS_PAIRS.values()


def by_sense(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Score by whether two texts say the same of the seeds."""
    return [ALIKE if harmless(one) is harmless(other) else APART for one, other in pairs]


def seeds(**options: Any) -> FEWL:
    """Return a FEWL with two references, the second of which believes one of the wrong answers."""

    def speaking(answer: str) -> ScriptedModel:
        pairs = "\n".join(
            f"{at}. Wrong Answer: {wrong}\n{at}. Non-Wrong Answer: {corrected}"
            for at, (wrong, corrected) in enumerate(SEEDS_PAIRS.items(), start=1)
        )
        replies = {"reference": answer, "pairs": pairs}
        return ScriptedModel(script=lambda stage, messages: replies[stage])

    given = {"similarity": by_sense, "penalty": False, "neighbors": store(), "n_wrong": 3}
    return FEWL([speaking(KNOWS), speaking(BELIEVES)], **{**given, **options})


def test_who_agrees_with_the_corrected_answers_on_the_seeds_weighs_more() -> None:
    """Compare with v1 (equation 2), whose weights are proportional to the expertise.

    These weights may be negative. demur takes the softmax of Algorithm 1. With weights that sum to
    1, it is the papers' softmax.
    """
    found = seeds(normalization="paper").invoke({"question": SEEDS, "answer": SEEDS_RIGHT})
    assert found.details["pairs_used"] == 3
    assert found.details["expertise"] == pytest.approx([ALIKE - APART, APART - ALIKE])
    odds = math.exp(2 * (ALIKE - APART))
    assert found.details["weights"] == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_the_right_answer_on_the_seeds_scores_above_the_wrong_one_although_one_reference_errs() -> (
    None
):
    right, wrong, evenly = (
        seeds(weighting=weighting).invoke({"question": SEEDS, "answer": answer})
        for answer, weighting in (
            (SEEDS_RIGHT, "expertise"),
            (SEEDS_WRONG, "expertise"),
            (SEEDS_WRONG, "uniform"),
        )
    )
    # With equal weights, both answers would score alike.
    assert (right.score or 0) > (evenly.score or 0) > (wrong.score or 0)


# --- Reverse Validation --------------------------------------------------------------------------


def validated(case: Case, matcher: str, same: str = "", **options: Any) -> Evaluation:
    """Validate a case whose stage 2 replies as in the paper and meets all requirements."""
    replies = {
        "construction": "\n".join(f"{at}. {one}" for at, one in enumerate(case.requirements, 1)),
        "access": f"Entity: {case.named}\nPercentage: 100%\nNot met: none",
        "matching": same,
    }
    model = ScriptedModel(script=lambda stage, messages: replies[stage])
    check = ReverseValidation(model, variant="em", matcher=matcher, **options)
    return check.invoke(Sample(answer=case.passage, metadata={"entity": case.entity}))


@pytest.mark.parametrize("matcher", ["published_em", "exact", "normalized"])
@pytest.mark.parametrize("case", [MAXIMILIAN, JORDAN], ids=lambda case: case.entity)
def test_names_of_table_7_in_another_form_are_rejected_by_every_matcher_that_asks_no_model(
    case: Case, matcher: str
) -> None:
    """Show false negatives of the paper too: both answers are factual, with a share of 100 percent.

    "normalized" takes no pet form for a name and no country for its history: many people are called
    "Max", and a part or a whole is another entity.
    """
    found = validated(case, matcher)
    assert (found.label, found.passed, found.failure) == ("non-factual", False, Failure.MISMATCH)
    assert found.details["percentage"] == 100
    assert found.details["unmet"] == []
    assert found.usage.calls == 2


@pytest.mark.parametrize(
    ("case", "said", "label", "score"),
    [(MAXIMILIAN, "Yes", "factual", 1), (JORDAN, "No", "non-factual", 0)],
    ids=["Maximilian", "Jordan"],
)
def test_a_model_that_is_asked_decides_about_names_of_table_7_for_a_call_more(
    case: Case, said: str, label: str, score: float
) -> None:
    """Ask whether the reply refers to the entity, as section 7.1 tries.

    The paper calls the second one a false negative; demur asks for exactly the same entity.
    """
    found = validated(case, "llm", same=said)
    assert (found.label, found.score, found.usage.calls) == (label, score, 3)


@pytest.mark.parametrize("matcher", ["published_em", "exact", "normalized", "llm"])
@pytest.mark.parametrize("case", [HOCKEY, LACRIMOSA], ids=lambda case: case.entity)
def test_outdated_facts_of_table_8_lead_back_and_pass_which_is_the_methods_own_limit(
    case: Case, matcher: str
) -> None:
    """Show false positives of the paper (section 7.2): the model is as outdated as the answer."""
    found = validated(case, matcher)
    assert (found.label, found.score, found.passed) == ("factual", 1, True)
    assert found.usage.calls == 2  # This also holds with "llm", because equal names need no model.
