"""Test short answers that state nothing, and those of the same look that state something."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from demur import Guard, RefChecker, Sample, ScoreCallbackHandler
from demur.evaluators.refchecker.assertion import asks_openly
from demur.evaluators.refchecker.coverage import stating
from demur.evaluators.refchecker.languages import languages
from demur.guard import REFUSAL
from support.guarded import traced
from support.handlers import Records
from support.markers import CONTEXT, IN_LANGUAGES, QUESTION, STATE_NOTHING, asked

OF_CONTEXT = {"question": QUESTION, "context": [CONTEXT]}


@pytest.fixture(scope="module")
def checker() -> RefChecker:
    return RefChecker("small")


@pytest.mark.parametrize("answer", STATE_NOTHING)
def test_a_marker_of_having_no_answer_states_nothing(checker: RefChecker, answer: str) -> None:
    found = checker.invoke(asked(answer))
    assert (found.finding, found.passed, found.claims) == ("nothing_to_check", None, ())


@pytest.mark.parametrize("answer", STATE_NOTHING)
def test_a_guard_does_with_it_what_on_abstain_says(checker: RefChecker, answer: str) -> None:
    def chain(question: str) -> dict[str, Any]:
        return {"answer": answer, "context": [CONTEXT]}

    found = traced(Guard(chain, checker), QUESTION)
    assert (found.trace.outcome, found.output["answer"]) == ("nothing_to_check", answer)
    strict = Guard(chain, checker, on_abstain="fail", on_fail="abstain")
    assert strict.invoke(QUESTION)["answer"] == REFUSAL


def test_a_handler_records_that_there_was_nothing_to_check(checker: RefChecker) -> None:
    records = Records()
    handler = ScoreCallbackHandler(checker, sink=records)
    for answer in STATE_NOTHING:
        chain = RunnableLambda(lambda given, said=answer: {"answer": said, **given})
        chain.invoke(OF_CONTEXT, {"callbacks": [handler]})
    handler.close()
    findings = [record.evaluations[0].finding for record in records.all]
    assert findings == ["nothing_to_check"] * len(STATE_NOTHING)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        # What is asked for may be just this.
        ("Which plans include telephone support?", "None."),
        ("What did the search for 'Meyer' return?", "No results."),
        ("What is the status of pump 3?", "Unknown"),
        ("How many complaints were there?", "0"),
        ("What does it return for an empty list?", "null"),
        ("Where was the wallet found?", "Not found."),
        ("Who came to the meeting?", "Nobody."),
        ("Is data migration in the contract?", "Out of scope."),
        ("What does the log print?", "OK"),
        # A yes is an answer to such questions.
        ("Is it free?", "Sure."),
        ("What about refunds?", "Of course."),
        ("When I cancel, do I get a refund?", "Sure."),
        ("What if it rains, is it open?", "OK"),
        # Something else is said besides.
        (QUESTION, "N/A, but it opened in 1911."),
        (QUESTION, "Unknown architects."),
        (QUESTION, "Not found: Ada Lovelace"),
        (QUESTION, '{"founder": "unknown", "opened": "1911"}'),
        (QUESTION, "It opens at 9 \u00af\\_(\u30c4)_/\u00af"),
    ],
)
def test_what_answers_the_question_is_checked(
    checker: RefChecker, question: str, answer: str
) -> None:
    found = checker.invoke(asked(answer, question))
    assert found.finding in ("passed", "failed")
    assert found.claims


@pytest.mark.parametrize("code", IN_LANGUAGES)
def test_in_each_language_the_question_decides_about_a_marker(code: str) -> None:
    fact, status, unknown, stopgaps = IN_LANGUAGES[code]
    for answer in (*unknown, *stopgaps, "N/A"):
        assert stating(Sample(question=fact, answer=answer)) == [], answer
    for answer in unknown:
        assert stating(Sample(question=status, answer=answer)), answer


def test_every_language_has_its_markers_here() -> None:
    assert {*IN_LANGUAGES, "en"} == {one.code for one in languages()}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        # A word of another language, or of contrast, and a courtesy that is a real word.
        ("Who wrote the report?", "Ben"),
        ("Who wrote the report?", "Dan"),
        ("How did they travel?", "Car"),
        ("What were the roofs made of?", "Of granite"),
        ("En quoi est la bague ?", "Or"),
        ("When can guests check in?", "Any time."),
        ("Which kidney was removed?", "Right."),
        ("How did the team play?", "Well."),
        ("Where does the law say it?", "In section 12"),
        ("When should I take the tablet?", "When there is any fever"),
        ("How do I use the drops?", "Repeat every four hours"),
        ("Is theft covered?", "It is not covered."),
        ("Can the debt be settled?", "It can be settled."),
        ("Wie war das Essen?", "Gut."),
        ("Why did she move away?", "Unable to find work."),
        ("What did the coroner say?", "Unable to determine the cause."),
        ("What happened when she called?", "Did not answer the question."),
    ],
)
def test_a_short_answer_that_looks_polite_is_checked(question: str, answer: str) -> None:
    assert stating(Sample(question=question, answer=answer))


def test_what_a_source_says_in_these_words_is_checked(checker: RefChecker) -> None:
    unknown = "The architect of the chapel is unknown."
    assert checker.invoke(asked("Unknown.", "Who built the chapel?", unknown)).claims


def test_without_a_question_a_word_that_may_be_an_answer_is_not_decided(
    checker: RefChecker,
) -> None:
    assert checker.invoke({"answer": "Unknown.", "contexts": [CONTEXT]}).undetermined
    assert checker.invoke({"answer": "N/A", "contexts": [CONTEXT]}).nothing_to_check


def test_a_sentence_of_a_stream_is_no_whole_answer(checker: RefChecker) -> None:
    begun = {**asked("N/A"), "preceding": "The rating of the hotel is:"}
    assert checker.invoke(begun).claims


@pytest.mark.parametrize(
    ("question", "is_open"),
    [
        *[(one, True) for one in ("Who founded it?", "Hello! Which plan is it?", "how old is she")],
        *[(one, False) for one in ("Is it free?", "What about refunds?", "Who founded it, Ada?")],
        *[(one, False) for one in ("What if I cancel?", "When I cancel do I pay?", "", "Refunds")],
    ],
)
def test_a_question_that_yes_may_answer_is_not_open(question: str, is_open: bool) -> None:
    assert asks_openly(question) is is_open


# -- The application's own words -------------------------------------------------------------------

OWN = ["Nothing for you today.", re.compile(r"Sorry, .{1,40} is not (my|our) business\.?")]


@pytest.mark.parametrize(
    "answer",
    ["Nothing for you today.", "  nothing FOR you\n today. ", "sorry, cooking is not our business"],
)
def test_the_applications_own_refusals_state_nothing(answer: str) -> None:
    assert RefChecker("small", refusals=OWN).invoke(asked(answer)).nothing_to_check
    assert not RefChecker("small").invoke(asked(answer)).nothing_to_check


@pytest.mark.parametrize(
    "answer",
    ["Nothing for you today. It opened in 1911.", "So: nothing for you today.", "Nothing for you"],
)
def test_a_refusal_counts_only_as_the_whole_answer(answer: str) -> None:
    assert RefChecker("small", refusals=OWN).invoke(asked(answer)).claims


def test_in_a_stream_it_counts_only_at_the_beginning() -> None:
    begun = {**asked("Nothing for you today."), "preceding": "The shop has moved."}
    assert RefChecker("small", refusals=OWN).invoke(begun).claims


def test_refusals_that_are_no_texts_are_refused() -> None:
    for wrong in ("NO ANSWER", [7]):
        with pytest.raises(ValueError, match="refusals"):
            RefChecker("small", refusals=wrong)  # type: ignore[arg-type]
