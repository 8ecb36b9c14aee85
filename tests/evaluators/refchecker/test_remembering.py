"""Test that a guarded call asks nothing twice, and that its memory changes no label."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage

from demur import ClaimLabel, Evaluation, RefChecker, Sample
from demur.runtime import Scope, within_scope
from support.fakes import ScriptedModel, isolated

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
        lines = (line.partition(". ") for line in isolated("claims", messages).splitlines())
        return "\n".join(f"{number}. {truth(reference, claim)}" for number, _, claim in lines)
    claim = isolated("claim", messages)
    label = truth(reference, claim)
    tokens = {str(one): -0.1 if one is label else -5.0 for one in ClaimLabel}
    top = [{"token": token, "logprob": value} for token, value in tokens.items()]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    return AIMessage(str(label), response_metadata=metadata)


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
def test_labels_are_those_without_memory_and_no_pair_is_asked_about_twice(
    mode: str, attempts: list[tuple[list[int], list[str]]]
) -> None:
    forgetful, remembering = (ScriptedModel(script=judge) for _ in range(2))
    scope = Scope()
    for numbers, passages in attempts:
        given_sample = sample(says(*numbers), *passages)
        with within_scope(scope):
            found = RefChecker(remembering, checker=mode, window_tokens=50).invoke(given_sample)
        fresh = RefChecker(forgetful, checker=mode, window_tokens=50).invoke(given_sample)
        assert labels(found) == labels(fresh)
        assert (found.passed, found.score, found.label) == (fresh.passed, fresh.score, fresh.label)
        for claim in found.claims:
            for evidence in claim.evidence:
                text = given_sample.contexts[evidence.context].page_content
                assert text[evidence.span.start : evidence.span.end] == evidence.text
    pairs = asked(remembering)
    assert len(pairs) == len(set(pairs))
    answers = [isolated("answer", m) for m in remembering.requests if "<answer-" in str(m)]
    assert len(answers) == len(set(answers))


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
def test_added_documents_come_into_windows_of_their_own_and_only_what_is_open_is_asked(
    mode: str,
) -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker=mode)
    with within_scope(Scope()):
        checker.invoke(sample(says(1, 2), "Item 1 is red.", "Nothing."))
        # The order differs and a document is new. Passages that were read together stay together.
        found = checker.invoke(sample(says(1, 2), "Item 2 is red.", "Nothing.", "Item 1 is red."))
    assert labels(found) == [("Item 1 is red", E), ("Item 2 is red", E)]
    # The first claim is known to be supported. For the second, only its new window is asked about.
    assert asked(model)[2:] == [("Item 2 is red.", "Item 2 is red")]
    assert [claim.evidence[0].context for claim in found.claims] == [2, 0]
    assert model.stages.count("extraction") == 1
    assert found.details["known"] == 2


def test_outside_of_a_guarded_call_and_in_another_one_nothing_is_remembered() -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker="joint")
    given_sample = sample(says(1), says(1))
    for scope in (None, None, Scope(), Scope()):
        with within_scope(scope):
            checker.invoke(given_sample)
    assert len(model.requests) == 8


def test_another_checker_prompt_model_or_question_is_another_matter() -> None:
    model, other = ScriptedModel(script=judge), ScriptedModel(script=judge)
    given_sample = sample(says(1), says(1))
    with within_scope(Scope()):
        RefChecker(model, checker="joint").invoke(given_sample)
        RefChecker(model, checker="joint").invoke(given_sample)
        assert len(model.requests) == 2, "an equal checker knows it too"
        RefChecker(model, checker="per_claim").invoke(given_sample)
        assert model.stages[2:] == ["claim"]
        RefChecker(other, checker="joint").invoke(given_sample)
        assert len(other.requests) == 2
        RefChecker(model, checker="joint").invoke(
            given_sample.model_copy(update={"question": "Which one is red?"})
        )
        assert model.stages[3:] == ["extraction", "joint"]


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
