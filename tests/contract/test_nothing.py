"""Test that no evaluator and no guard reports an answer that states nothing as passed."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from contract.member import Member
from contract.ways import WAYS, called
from demur import Evaluation, Guard, Sample
from demur.evaluators import AnswerRelevance, SelfContradiction
from demur.guard import REFUSAL, UNCHECKED
from support import facts
from support.guarded import Heard

SILENT = "I don't know."
"""An answer without claims, by its form and for the scripted extractor, which says "No claims"."""


def silent(member: Member) -> Sample:
    """Return a sample for the member, with an answer that states nothing."""
    given: Sample = member.give(3)
    return given.model_copy(update={"answer": SILENT})


@pytest.mark.parametrize("way", WAYS)
def test_no_evaluator_says_that_it_passed(member: Member, made: Any, way: str) -> None:
    found: Evaluation = called(made, way, silent(member), Heard())
    assert found.passed is not True
    if _abstains(made):
        assert (found.finding, found.label) == ("nothing_to_check", "Abstain")


@pytest.mark.slow
@pytest.mark.parametrize(("on_abstain", "way"), [("pass", "stream"), ("fail", "astream")])
def test_no_guard_says_that_it_passed(member: Member, made: Any, way: str, on_abstain: Any) -> None:
    for streaming in ("buffer", "sentence") if made.claim_level else ("buffer",):
        guard = _guard(made, on_abstain=on_abstain, streaming=streaming)
        heard = Heard()
        output = called(guard, way, facts.question(3), heard)
        (trace,) = heard.traces
        told = [data for name, data in heard.events if name == "demur.outcome"]
        assert [one["outcome"] for one in told] == [trace.outcome]
        assert trace.outcome not in ("passed", "recovered")
        assert {one.verdict for one in trace.attempts} <= {
            "nothing_to_check",
            "failed",
            "undetermined",
        }
        judged = [data for name, data in heard.events if name == "demur.evaluation"]
        assert judged
        assert not [one for one in judged if one["finding"] == "passed" or one["passed"]]
        let_through = on_abstain == "pass" and _abstains(made)
        unchecked = trace.attempts[-1].verdict == "undetermined"
        assert output == (SILENT if let_through else UNCHECKED if unchecked else REFUSAL)
        if _abstains(made):
            assert trace.outcome == ("nothing_to_check" if let_through else "abstained")


def _abstains(evaluator: Any) -> bool:
    """Return whether the evaluator tells answers that state nothing from answers that fail."""
    return evaluator.claim_level or isinstance(evaluator, (AnswerRelevance, SelfContradiction))


def _guard(evaluator: Any, **options: Any) -> Guard[Any, Any]:
    chain = RunnableLambda(lambda question: SILENT)
    contexts = [Document("A list of items")]
    return Guard(chain, evaluator, contexts=lambda output: contexts, **options)
