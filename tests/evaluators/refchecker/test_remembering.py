"""Test that a guarded call judges no claim twice, and that its memory changes no label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage

from demur import ClaimLabel, Evaluation, RefChecker, Sample
from demur.runtime import Scope, within_scope
from support.fakes import ScriptedModel, deciding, isolated, labelled

MODES = ["joint", "per_claim", "logprobs"]
E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION


def truth(reference: str, claim: str) -> ClaimLabel:
    """Return what a text says of "Item 3 is red", however it is cut into windows."""
    if f"{claim}." in reference:
        return E
    return C if f"{claim.replace(' is ', ' is not ')}." in reference else N


def judge(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    if stage == "extraction":
        items = re.findall(r"(Item \d+) is (\w+)", isolated("answer", messages))
        return "\n".join(f'("{item}", "is", "{what}")' for item, what in items) or "No claims"
    reference = isolated("reference", messages)
    if stage == "joint":
        return labelled(messages, lambda claim: truth(reference, claim))
    return deciding(truth(reference, isolated("claim", messages)))


def asked(model: ScriptedModel) -> list[tuple[str, str]]:
    """Return every pair of window and claim that the model was asked about."""
    found = []
    for stage, messages in zip(model.stages, model.requests, strict=True):
        if stage == "joint":
            lines = isolated("claims", messages).splitlines()
            claims = [line.partition(". ")[2] for line in lines]
        else:
            claims = [isolated("claim", messages)] if stage == "claim" else []
        found += [(isolated("reference", messages), claim) for claim in claims]
    return found


def labels(found: Evaluation) -> list[tuple[str, ClaimLabel | None]]:
    return [(claim.text, claim.label) for claim in found.claims]


def sample(answer: str, *contexts: str) -> Sample:
    return Sample(question="What are the items like?", answer=answer, contexts=contexts)


def says(*numbers: int) -> str:
    return " ".join(f"Item {number} is red." for number in numbers)


PASSAGE = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6).map(
    lambda facts: " ".join(f"Item {n} is {'' if so else 'not '}red." for n, so in facts)
)
ATTEMPT = st.tuples(
    st.lists(st.integers(0, 5), min_size=1, max_size=4), st.lists(PASSAGE, min_size=1, max_size=5)
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@given(attempts=st.lists(ATTEMPT, min_size=1, max_size=4))
@settings(max_examples=6)
def test_labels_are_those_without_memory(
    mode: str, attempts: list[tuple[list[int], list[str]]]
) -> None:
    forgetful, remembering = (ScriptedModel(script=judge) for _ in range(2))
    options: dict[str, Any] = {"checker": mode, "window_tokens": 50, "max_windows": 30}
    checker = RefChecker(remembering, **options)
    scope = Scope()
    contexts: list[str] = []
    for numbers, added in attempts:
        contexts += added
        given_sample = sample(says(*numbers), *contexts)
        with within_scope(scope):
            found = checker.invoke(given_sample)
        fresh = RefChecker(forgetful, **options).invoke(given_sample)
        assert labels(found) == labels(fresh)
        assert (found.passed, found.score, found.label) == (fresh.passed, fresh.score, fresh.label)
        for claim in found.claims:
            for evidence in claim.evidence:
                text = given_sample.contexts[evidence.context].page_content
                assert text[evidence.span.start : evidence.span.end] == evidence.text
    assert len(asked(remembering)) <= len(asked(forgetful))


@pytest.mark.parametrize("mode", MODES)
def test_of_a_changed_answer_only_the_new_claims_are_asked_about(mode: str) -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker=mode)
    text = says(1, 2)
    with within_scope(Scope()):
        first = checker.invoke(sample(says(1, 3), text))
        assert first.details["known"] == 0
        count = len(model.requests)
        second = checker.invoke(sample(says(1, 2), text))
    assert second.details["known"] == 1
    assert labels(second) == [("Item 1 is red", E), ("Item 2 is red", E)]
    assert asked(model)[2:] == [(text, "Item 2 is red")]
    assert second.usage.calls == len(model.requests) - count == 2


@pytest.mark.parametrize("mode", MODES)
def test_documents_that_follow_are_read_for_claims_that_were_not_supported(mode: str) -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker=mode)
    with within_scope(Scope()):
        checker.invoke(sample(says(1, 2), "Item 1 is red.", "Nothing."))
        found = checker.invoke(sample(says(1, 2), "Item 1 is red.", "Nothing.", "Item 2 is red."))
    assert labels(found) == [("Item 1 is red", E), ("Item 2 is red", E)]
    # The first claim is known to be supported. For the second, all documents are read together.
    together = "Item 1 is red.\n\nNothing.\n\nItem 2 is red."
    assert asked(model)[2:] == [(together, "Item 2 is red")]
    assert [claim.evidence[0].context for claim in found.claims] == [0, 2]
    assert found.details["known"] == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("now", [("Nothing.", "Item 1 is red."), ("Nothing.",), ()])
def test_with_other_documents_a_claim_is_judged_anew(mode: str, now: tuple[str, ...]) -> None:
    checker = RefChecker(ScriptedModel(script=judge), checker=mode)
    with within_scope(Scope()):
        assert checker.invoke(sample(says(1), "Item 1 is red.", "Nothing.")).passed is True
        other = sample(says(1), *now).model_copy(update={"reference": "Nothing."})
        found = checker.invoke(other)
    assert found.details["known"] == 0
    assert found.passed is ("Item 1 is red." in now)


@pytest.mark.parametrize("mode", MODES)
def test_of_long_references_a_claim_that_stays_is_not_searched_for_again(mode: str) -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker=mode, window_tokens=50)
    contexts = [f"Item {n} is red. {'Nothing is said here. ' * 10}" for n in range(1, 7)]
    with within_scope(Scope()):
        first = checker.invoke(sample(says(1, 2, 9), *contexts))
        count = len(asked(model))
        second = checker.invoke(sample(says(1, 2), *contexts))
    assert first.details["windows_left_out"] == second.details["windows_left_out"] > 0
    assert (second.passed, second.details["known"], len(asked(model))) == (True, 2, count)


def test_outside_of_a_guarded_call_and_in_another_one_nothing_is_remembered() -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker="joint")
    given_sample = sample(says(1), says(1))
    for scope in (None, None, Scope(), Scope()):
        with within_scope(scope):
            checker.invoke(given_sample)
    assert len(model.requests) == 8


def test_another_evaluator_or_question_is_another_matter() -> None:
    model = ScriptedModel(script=judge)
    given_sample = sample(says(1), says(1))
    checker = RefChecker(model, checker="joint")
    with within_scope(Scope()):
        checker.invoke(given_sample)
        checker.invoke(given_sample)
        assert model.stages == ["extraction", "joint", "extraction"]
        RefChecker(model, checker="per_claim").invoke(given_sample)
        assert model.stages[3:] == ["extraction", "claim"]
        checker.invoke(given_sample.model_copy(update={"question": "Which one is red?"}))
        assert model.stages[5:] == ["extraction", "joint"]


@pytest.mark.parametrize("mode", ["joint", "per_claim"])
def test_a_missing_label_is_asked_for_again(mode: str) -> None:
    replies = iter(["Well.", "Well.", "1. Entailment" if mode == "joint" else "Entailment"])

    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        return judge(stage, messages) if stage == "extraction" else next(replies)

    checker = RefChecker(ScriptedModel(script=script), checker=mode)
    with within_scope(Scope()):
        assert checker.invoke(sample(says(1), says(1))).undetermined
        found = checker.invoke(sample(says(1), says(1)))
    assert (found.passed, found.details["known"]) == (True, 0)
