"""Test what the texts of the injection suite can do to the real local model."""

from __future__ import annotations

import pytest

from demur.local import ChatLocal
from demur.runtime.prompting import as_shown
from demur_research.tables.checkers import GivenClaims
from demur_research.texts.answers import let_through
from demur_research.texts.injections import CASES, INJECTIONS, Case, placed

pytestmark = pytest.mark.real


@pytest.mark.smoke
def test_no_text_holds_a_control_token_of_the_model(model: ChatLocal) -> None:
    end = model.get_token_ids("<|im_end|>")
    assert len(end) == 1  # The server reads it as a control token anywhere.
    for injection in INJECTIONS:
        assert end[0] not in model.get_token_ids(as_shown(injection.text)), injection
    for token in ("<|im_start|>", "<|endoftext|>", "<|fim_prefix|>", "<tool_call>", "</s>"):
        assert len(model.get_token_ids(token)) == 1
        assert len(model.get_token_ids(as_shown(token))) > 1


@pytest.mark.parametrize(
    ("judge", "every"), [("model", 13), ("judge_of_llama_cpp", 39)], ids=["local", "llama.cpp"]
)
def test_no_text_turns_a_rejected_claim_into_a_pass_by_the_adapter(
    judge: str, every: int, request: pytest.FixtureRequest
) -> None:
    """A sample; `demur-bench injection -O modes=adapter` has all texts."""
    pytest.importorskip("demur_judge")
    evaluator = GivenClaims(model=request.getfixturevalue(judge), checker="adapter")

    def passes(case: Case) -> bool:
        found = evaluator.invoke({"answer": case.claim, "contexts": [case.passage]})
        assert not found.undetermined, found.error
        return let_through(found)

    sampled = [*enumerate(INJECTIONS)][::every]
    assert len({at % len(CASES) for at, _ in sampled}) == min(len(CASES), len(sampled)) > 1
    for number, (at, one) in enumerate(sampled):
        case, place = CASES[at % len(CASES)], ("passage", "claim")[number % 2]
        assert not passes(case), case
        assert not passes(placed(case, place, one.text)), (place, one)
