"""Test that an assertion about an answer fails as a reader of the failure needs it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from demur import Evaluation, RefChecker
from demur.testing import assert_grounded
from support.fakes import ScriptedModel, saying

GUIDE = "The Louvre, in Paris, opened as a museum in 1793. It holds about 500,000 works of art."


def failure(*arguments: Any, **options: Any) -> list[str]:
    with pytest.raises(AssertionError) as raised:
        assert_grounded(*arguments, **options)
    return str(raised.value).splitlines()


@pytest.mark.parametrize(
    "answer",
    [
        "The Louvre opened in 1793.",
        AIMessage("The Louvre opened in 1793."),
        {"opened": "The Louvre opened in 1793."},
    ],
)
@pytest.mark.parametrize("contexts", [GUIDE, [GUIDE], Document(GUIDE), (Document(GUIDE), "More.")])
def test_a_grounded_answer_passes_whatever_its_form(answer: Any, contexts: Any) -> None:
    assert_grounded(answer, contexts, "When did it open?")


def test_a_failure_marks_the_sentence_and_quotes_what_contradicts_it() -> None:
    said = failure("The Louvre is in Paris. It opened in 1851.", GUIDE)
    assert said == [
        "not grounded: It opened in 1851.",
        "    The Louvre is in Paris.",
        ">   It opened in 1851.",
        *(line for line in said if line.startswith("RefChecker: failed, score 0.")),
        "    Contradiction: It opened in 1851.",
        '        nearest quote, context 1: "The Louvre, in Paris, opened as a museum in 1793."',
        "        not in the contexts: 1851",
    ]


def test_a_claim_without_evidence_has_the_nearest_sentence_and_the_words_that_are_missing() -> None:
    model = ScriptedModel(script=lambda stage, messages: "1. Neutral")
    judge = RefChecker(model, claims="sentences")
    (*_, label, quote, missing) = failure(
        "The works of art were counted by robots.", ["Nothing near.", GUIDE], evaluator=judge
    )
    assert label == "    Neutral: The works of art were counted by robots."
    assert quote == '        nearest quote, context 2: "It holds about 500,000 works of art."'
    assert missing == "        not in the contexts: counted, robots"


def test_of_a_long_answer_the_failing_sentences_and_their_neighbours_are_shown() -> None:
    answer = " ".join(
        [*["The Louvre is in Paris."] * 9, "It opened in 1851.", "The Louvre is in Paris."]
    )
    said = failure(answer, GUIDE)
    assert said[1:5] == [
        "    The Louvre is in Paris.",
        ">   It opened in 1851.",
        "    The Louvre is in Paris.",
        *(line for line in said if line.startswith("RefChecker:")),
    ]


def test_of_many_failing_claims_the_first_are_shown_and_the_others_counted() -> None:
    said = failure("It opened in 1851. " * 1000, GUIDE)
    assert sum(line.startswith(">") for line in said) == 10
    assert sum("Contradiction" in line for line in said) == 10
    assert said[-1] == "    and 990 more claims"


def test_a_missing_identifier_is_not_repeated_as_a_word() -> None:
    assert failure("It is model 2J.", GUIDE)[-1] == "        not in the contexts: 2J, model"


def test_a_failure_says_what_a_wrong_figure_would_be() -> None:
    said = failure(
        "The offices in Leeds and York have 310 employees in total.",
        "The office in Leeds has 120 employees and the office in York has 170 employees.",
        evaluator=RefChecker(saying("1. Entailment"), claims="sentences"),
    )
    assert said[-4].startswith("    Contradiction: ")
    assert said[-3].strip() == "120 + 170 = 290, not 310"
    assert "120 employees and the office in York" in said[-2]


@pytest.mark.parametrize("contexts", [(one for one in [GUIDE]), {GUIDE}, [1], 1])
def test_contexts_that_are_no_list_of_texts_are_named(contexts: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a (list of strings|string)"):
        assert_grounded("The Louvre opened in 1793.", contexts)


def test_a_failure_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-4f9aQ7LmZx82TbVd03Kc"
    monkeypatch.setenv("OUR_API_KEY", secret)
    said = "\n".join(failure(f"It opened in 1851 with {secret}.", GUIDE))
    assert "[secret]" in said
    assert secret not in said


def test_what_is_undetermined_fails_and_says_why() -> None:
    said = failure("The Louvre opened in 1793.", [])
    assert said[0] == "undetermined, which is no pass: no contexts"
    assert "RefChecker: undetermined" in said


def test_any_evaluator_can_judge_and_each_that_rejects_is_named() -> None:
    def long_enough(sample: Any) -> bool:
        return len(sample.answer) > 100

    def polite(sample: Any) -> Evaluation:
        return Evaluation(name="polite", passed=False, score=0.1, explanation="it is rude")

    def fine(sample: Any) -> bool:
        return True

    said = failure("No.", GUIDE, evaluator=[long_enough, polite, fine])
    assert any(line.startswith("long_enough: failed") for line in said)
    assert said[-2:] == ["polite: failed, score 0.10", "    it is rude"]
    assert not any(line.startswith("fine") for line in said)


def test_an_answer_that_states_nothing_passes_unless_that_is_a_failure() -> None:
    assert_grounded("I don't know.", GUIDE)
    assert failure("I don't know.", GUIDE, on_abstain="fail")[0] == (
        "the answer states nothing that can be checked"
    )


def test_texts_of_answers_cannot_write_to_the_terminal() -> None:
    said = "\n".join(failure("It opened in 1851\x1b[2J.", GUIDE))
    assert "\x1b" not in said
