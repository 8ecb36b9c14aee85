"""Test which of the papers' worked examples the real local model, with 1.5B parameters, decides.

tests/evaluators/test_worked_examples.py tests the methods with the replies of the source. If the
small model fails an example, the test says so and checks the rest: the decision can be read, or
there is none, and no label is made up.
"""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import Evaluation, RefChecker, ReverseValidation, Sample
from support.fakes import ScriptedModel
from support.worked_examples import HOCKEY, IBUPROFEN, MAXIMILIAN, WEISS

pytestmark = pytest.mark.real


def says(answer: str, model: BaseChatModel, sample: Sample = IBUPROFEN) -> Evaluation:
    return RefChecker(model).invoke(sample.model_copy(update={"answer": answer}))


def test_ibuprofens_nausea_is_supported_and_another_side_effect_is_not(
    model: BaseChatModel,
) -> None:
    # "Ibuprofen eases fever" passes: what is widely known may count as supported
    # (docs/methods/refchecker.md).
    assert says("Nausea is a common side effect of ibuprofen.", model).label == "Entailment"
    assert says("A common side effect of ibuprofen is hair loss.", model).label == "Neutral"


def test_ibuprofens_answer_fails_by_triplets(model: BaseChatModel) -> None:
    """Check a part of the answer, because each triplet is a call: one use and two side effects."""
    part = "Ibuprofen eases fever. Its common side effects are nausea and giddiness."
    sample = IBUPROFEN.model_copy(update={"answer": part})
    found = RefChecker(model, claims="triplets", checker="logprobs").invoke(sample)
    assert (found.error, found.passed) == (None, False)
    labels = [claim.label for claim in found.claims]
    assert len(labels) >= 2
    assert None not in labels
    assert found.score == min(claim.support or 0 for claim in found.claims)


def test_andre_weiss_is_told_by_his_question_and_a_wrong_number_is_contradicted(
    model: BaseChatModel,
) -> None:
    right, wrong = says("11 years", model, WEISS), says("7 years", model, WEISS)
    assert (right.label, right.passed) == ("Entailment", True), right
    assert wrong.passed is False, wrong
    assert right.claims[0].text == f"{WEISS.question} 11 years"


def test_max_emanuel_of_table_7_is_taken_for_the_entity(model: BaseChatModel) -> None:
    """Give stage 2 the paper's reply, and check what the model decides about the name."""
    reply = f"Entity: {MAXIMILIAN.named}\nPercentage: 100%\nNot met: none"
    validator = ScriptedModel(script=lambda stage, messages: reply)
    check = ReverseValidation(model, variant="em", validator=validator, matcher="llm")
    found = check.invoke(Sample(answer=MAXIMILIAN.passage, metadata={"entity": MAXIMILIAN.entity}))
    assert found.usage.calls == 3  # The names alone differ.
    assert (found.label, found.score) == ("factual", 1), found


def test_the_outdated_national_hockey_league_of_table_8_leads_back_and_passes(
    model: BaseChatModel,
) -> None:
    """Check an answer outdated since 2021, which the method cannot see (section 7.2)."""
    check = ReverseValidation(model, variant="qg")
    found = check.invoke(Sample(answer=HOCKEY.passage, metadata={"entity": HOCKEY.entity}))
    assert HOCKEY.entity.lower() not in str(found.details["query"]).lower()
    assert (found.label, found.score) == ("factual", 1), found
