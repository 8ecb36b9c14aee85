"""The sources' worked examples on the real local model: what of them a model of 1.5B decides.

tests/evaluators/test_worked_examples.py has what the methods make of them once every reply is as in
the source. Where the small model fails an example, the test says so, and holds it to what is left:
a decision that can be read, or none, and no label that no reply gave.
"""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import FEWL, ClaimLabel, Evaluation, RefChecker, ReverseValidation, Sample
from demur.evaluators import NeighborStore
from support.fakes import ScriptedModel
from support.worked_examples import (
    HOCKEY,
    IBUPROFEN,
    JORDAN,
    LACRIMOSA,
    MAXIMILIAN,
    SEEDS,
    SEEDS_RIGHT,
    SEEDS_WRONG,
    WEISS,
    Case,
)

pytestmark = pytest.mark.real


def says(answer: str, model: BaseChatModel, sample: Sample = IBUPROFEN) -> Evaluation:
    return RefChecker(model).invoke(sample.model_copy(update={"answer": answer}))


def test_ibuprofens_nausea_is_supported_and_its_use_against_fever_is_not(
    model: BaseChatModel,
) -> None:
    assert says("Nausea is a common side effect of ibuprofen.", model).label == "Entailment"
    assert says("Ibuprofen eases fever.", model).label == "Neutral"


def test_ibuprofens_trouble_with_breathing_can_be_read_although_its_denial_is_missed(
    model: BaseChatModel,
) -> None:
    """The source has Contradiction. The model answered Entailment on 2026-11-24: it misses "not".

    Giddiness, Neutral in the source, it took for the reference's dizziness, as a person may.
    """
    for effect in ("Trouble with breathing", "Giddiness"):
        found = says(f"{effect} is a common side effect of ibuprofen.", model)
        (claim,) = found.claims
        assert found.error is None
        assert claim.label in ClaimLabel
        assert all(one.text in str(IBUPROFEN.reference) for one in claim.evidence)


def test_ibuprofens_answer_fails_by_triplets(model: BaseChatModel) -> None:
    """A part of the answer, since each triplet is a call: one use and two side effects."""
    part = "Ibuprofen eases fever. Its common side effects are nausea and giddiness."
    sample = IBUPROFEN.model_copy(update={"answer": part})
    found = RefChecker(model, claims="triplets").invoke(sample)
    assert (found.error, found.passed) == (None, False)
    labels = [claim.label for claim in found.claims]
    assert len(labels) >= 2
    assert None not in labels
    assert found.score == labels.count(ClaimLabel.ENTAILMENT) / len(labels)


def test_andre_weiss_is_told_by_his_question_and_a_wrong_number_is_contradicted(
    model: BaseChatModel,
) -> None:
    right, wrong = says("11 years", model, WEISS), says("7 years", model, WEISS)
    assert (right.label, right.passed) == ("Entailment", True), right
    assert wrong.passed is False, wrong
    assert right.claims[0].text == f"{WEISS.question} 11 years"


def test_watermelon_seeds_are_scored(model: BaseChatModel) -> None:
    """The model's own answers speak of the seeds' taste, so that the order of scores tells nothing.

    By words its wrong and corrected answers are alike, and so the weights are nearly even.
    """
    fewl = FEWL(model, n_answers=2, n_wrong=1, min_pairs=1, neighbors=NeighborStore())
    right, wrong = (
        fewl.invoke({"question": SEEDS, "answer": answer}) for answer in (SEEDS_RIGHT, SEEDS_WRONG)
    )
    for found in (right, wrong):
        assert found.error is None
        assert found.score is not None
        assert 0 < found.score < 0.5
        assert found.details["pairs_used"] >= 1  # small models write bad pairs
        assert sum(found.details["weights"]) == pytest.approx(2)
    assert (right.usage.calls, wrong.usage.calls) == (2, 0)
    assert right.details["expertise"] == wrong.details["expertise"]


@pytest.mark.parametrize("case", [MAXIMILIAN, JORDAN], ids=lambda case: case.entity)
def test_the_model_is_asked_whether_a_name_of_table_7_is_the_entitys(
    case: Case, model: BaseChatModel
) -> None:
    """Stage 2 says what it said in the paper. The model accepts Max Emanuel, as he should be.

    It accepted "Jordan" for its history too, on 2026-11-24. The prompt says that something more
    general is not the entity, while the paper calls the rejection a false negative.
    """
    reply = f"Entity: {case.named}\nPercentage: 100%\nNot met: none"
    validator = ScriptedModel(script=lambda stage, messages: reply)
    check = ReverseValidation(model, variant="em", validator=validator, matcher="llm")
    found = check.invoke(Sample(answer=case.passage, metadata={"entity": case.entity}))
    assert found.usage.calls == 3  # by the names alone they differ
    if case is MAXIMILIAN:
        assert (found.label, found.score) == ("factual", 1), found
    else:
        assert found.score in (0, 1, None)
        assert found.undetermined is (found.label is None)


def test_the_outdated_national_hockey_league_of_table_8_leads_back_and_passes(
    model: BaseChatModel,
) -> None:
    """It has had another number of teams since 2021, which the method cannot see (section 7.2)."""
    found = validated(HOCKEY, model)
    assert (found.label, found.score) == ("factual", 1), found


def test_the_outdated_lacrimosa_of_table_8_is_decided_by_what_the_model_knows(
    model: BaseChatModel,
) -> None:
    """In the paper it passes. The small model does not know the band, and names a famous one."""
    found = validated(LACRIMOSA, model)
    assert found.error is None
    assert found.passed is ("lacrimosa" in str(found.details["reply"]).lower())


def validated(case: Case, model: BaseChatModel) -> Evaluation:
    check = ReverseValidation(model, variant="qg")
    found = check.invoke(Sample(answer=case.passage, metadata={"entity": case.entity}))
    assert case.entity.lower() not in str(found.details["query"]).lower()
    return found
