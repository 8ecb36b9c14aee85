"""Test which of the papers' worked examples the real local model, with 1.5B parameters, decides.

tests/evaluators/test_worked_examples.py tests the methods with the replies of the source. If the
small model fails an example, the test says so and checks the rest: the decision can be read, or
there is none, and no label is made up.
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
    """Check only that there is a label: the model misses "not".

    The source has Contradiction; the model answered Entailment on 2026-11-24. It took giddiness,
    Neutral in the source, for the reference's dizziness, as a person may.
    """
    for effect in ("Trouble with breathing", "Giddiness"):
        found = says(f"{effect} is a common side effect of ibuprofen.", model)
        (claim,) = found.claims
        assert found.error is None
        assert claim.label in ClaimLabel
        assert all(one.text in str(IBUPROFEN.reference) for one in claim.evidence)


def test_ibuprofens_answer_fails_by_triplets(model: BaseChatModel) -> None:
    """Check a part of the answer, because each triplet is a call: one use and two side effects."""
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
    """Check only the form of the scores, because their order says nothing here.

    The model's own answers are about the seeds' taste. Its wrong and corrected answers share most
    words, so the weights are nearly equal.
    """
    fewl = FEWL(model, n_answers=2, n_wrong=1, min_pairs=1, neighbors=NeighborStore())
    right, wrong = (
        fewl.invoke({"question": SEEDS, "answer": answer}) for answer in (SEEDS_RIGHT, SEEDS_WRONG)
    )
    for found in (right, wrong):
        assert found.error is None
        assert found.score is not None
        assert 0 < found.score < 0.5
        assert found.details["pairs_used"] >= 1  # Small models write bad pairs.
        assert sum(found.details["weights"]) == pytest.approx(2)
    assert (right.usage.calls, wrong.usage.calls) == (2, 0)
    assert right.details["expertise"] == wrong.details["expertise"]


@pytest.mark.parametrize("case", [MAXIMILIAN, JORDAN], ids=lambda case: case.entity)
def test_the_model_is_asked_whether_a_name_of_table_7_is_the_entitys(
    case: Case, model: BaseChatModel
) -> None:
    """Give stage 2 the paper's reply, and check what the model decides about the name.

    It accepts Max Emanuel, as it should. On 2026-11-24 it accepted "Jordan" for its history too.
    The prompt says that something more general is not the entity; the paper calls the rejection a
    false negative.
    """
    reply = f"Entity: {case.named}\nPercentage: 100%\nNot met: none"
    validator = ScriptedModel(script=lambda stage, messages: reply)
    check = ReverseValidation(model, variant="em", validator=validator, matcher="llm")
    found = check.invoke(Sample(answer=case.passage, metadata={"entity": case.entity}))
    assert found.usage.calls == 3  # The names alone differ.
    if case is MAXIMILIAN:
        assert (found.label, found.score) == ("factual", 1), found
    else:
        assert found.score in (0, 1, None)
        assert found.undetermined is (found.label is None)


def test_the_outdated_national_hockey_league_of_table_8_leads_back_and_passes(
    model: BaseChatModel,
) -> None:
    """Check an answer outdated since 2021, which the method cannot see (section 7.2)."""
    found = validated(HOCKEY, model)
    assert (found.label, found.score) == ("factual", 1), found


def test_the_outdated_lacrimosa_of_table_8_is_decided_by_what_the_model_knows(
    model: BaseChatModel,
) -> None:
    """Check that the answer, which passes in the paper, passes only if the model names Lacrimosa.

    The small model does not know the band, and names a famous one.
    """
    found = validated(LACRIMOSA, model)
    assert found.error is None
    assert found.passed is ("lacrimosa" in str(found.details["reply"]).lower())


def validated(case: Case, model: BaseChatModel) -> Evaluation:
    check = ReverseValidation(model, variant="qg")
    found = check.invoke(Sample(answer=case.passage, metadata={"entity": case.entity}))
    assert case.entity.lower() not in str(found.details["query"]).lower()
    return found
