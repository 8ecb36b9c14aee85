"""Test that claim evaluators check the sentences from which the extractor took no claim."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from contract.evaluators import EVALUATORS, refchecker
from contract.member import Member
from contract.ways import WAYS, called
from demur import Cascade, Evaluation, Guard, Sample
from demur.guard import REFUSAL
from support import facts
from support.guarded import Heard

LEFT_OUT = "The moon is made of old cheese."
"""A sentence that no scripted extractor takes a claim from, and no scripted judge supports."""
ANSWER = f"{facts.answer(2)} {LEFT_OUT}"


OF_CLAIMS = [one for one in EVALUATORS if one.name.startswith(("refchecker", "cascade"))]


@pytest.fixture(params=OF_CLAIMS, ids=lambda member: member.name)
def member(request: pytest.FixtureRequest) -> Member:
    return request.param


@pytest.mark.parametrize("way", WAYS)
def test_a_sentence_that_nobody_nominates_is_checked(member: Member, made: Any, way: str) -> None:
    given: Sample = member.give(2)
    found: Evaluation = called(made, way, given.model_copy(update={"answer": ANSWER}), Heard())
    assert found.passed is False
    start = ANSWER.index(LEFT_OUT)
    assert start in [claim.span.start for claim in found.claims if claim.span and claim.label]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "streaming"), [("astream", "sentence"), ("stream", "buffer")])
def test_no_guard_lets_it_out(made: Any, way: str, streaming: Any) -> None:
    heard = Heard()
    contexts = [Document("A list of items")]
    guard = Guard(
        RunnableLambda(lambda question: ANSWER),
        made,
        contexts=lambda output: contexts,
        on_fail="abstain",
        streaming=streaming,
    )
    output = called(guard, way, facts.question(2), heard)
    assert LEFT_OUT not in output
    assert output.endswith(REFUSAL)
    assert [trace.outcome for trace in heard.traces] == ["abstained"]


def test_a_cascade_checks_it_by_its_first_stage() -> None:
    given = facts.sample(2).model_copy(update={"answer": ANSWER})
    found = Cascade([refchecker("joint"), refchecker("per_claim")]).invoke(given)
    assert found.passed is False
    assert found.details["fallback_claims"] == [LEFT_OUT]
