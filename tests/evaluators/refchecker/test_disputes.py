"""Test what RefChecker makes of references that disagree about a claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

from demur import ClaimLabel, Evaluation, Failure, Guard, RefChecker
from demur.guard import Feedback
from demur.runtime import Scope, within_scope
from support.fakes import ScriptedModel, isolated, weighing

E, N, C = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
NEW = "From March 2025 the Basic plan costs $15 a month."
OLD = "As of 2023 the Basic plan costs $12 a month."
PRO = "The Pro plan costs $49 a month."
SEATS = "The Basic plan has 5 seats."
CLAIM = "The Basic plan costs $12 a month."
QUESTION = "What does the Basic plan cost?"

Shares = tuple[float, float, float]
"""The probabilities of Entailment, Neutral and Contradiction."""
ALONE: Mapping[str, Shares] = {
    OLD: (0.97, 0.02, 0.01),
    NEW: (0.02, 0.03, 0.95),
    PRO: (0.02, 0.03, 0.95),
    SEATS: (0.01, 0.98, 0.01),
}
TOGETHER: Shares = (0.85, 0.03, 0.12)


class Adapted(ScriptedModel):
    """Judge as the local model does by demur's adapter."""

    @property
    def judging(self) -> dict[str, Any]:
        return {}


def reading(together: Shares = TOGETHER, answers: float | None = None) -> Adapted:
    """Return a judge that reads the texts of `ALONE`, and several of them as told.

    Args:
        together: What it reads in several texts at once.
        answers: The probability that a text answers the question. None: the texts about the Basic
            plan's price do.
    """

    def script(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        text, claim = isolated("reference", messages), isolated("claim", messages)
        if QUESTION.rstrip("?") in claim:
            sure = answers or (0.95 if text in (OLD, NEW) else 0.02)
            return told((sure, 1 - sure, 0))
        return told(ALONE.get(text, together))

    return Adapted(script=script)


def told(shares: Shares) -> AIMessage:
    known = zip((E, N, C), shares, strict=True)
    likely = sorted(known, key=lambda of: -of[1])
    return weighing("x", {one.value: math.log(max(share, 1e-6)) for one, share in likely})


def check(
    *contexts: str | Document,
    model: Adapted | None = None,
    question: str | None = QUESTION,
    answer: str = CLAIM,
    **options: Any,
) -> Evaluation:
    judge = RefChecker(model or reading(), claims="sentences", **options)
    return judge.invoke({"question": question, "answer": answer, "contexts": [*contexts]})


def dated(text: str, value: object, key: str = "date") -> Document:
    return Document(text, metadata={key: value})


# -- What is found ---------------------------------------------------------------------------------


def test_a_claim_that_references_disagree_about_is_marked_and_has_both_quotes() -> None:
    found = check(SEATS, NEW, OLD)
    (claim,) = found.claims
    assert (claim.contested, claim.label, found.passed) == (True, E, True)
    assert {(one.context, one.text, one.label) for one in claim.evidence} >= {
        (2, OLD, E),
        (1, NEW, C),
    }
    assert found.details["contested"] == 1
    assert claim.reason == "the references disagree about it"
    assert f'reference 2, Contradiction: "{NEW}"' in str(found)


def test_a_text_about_something_else_contests_nothing() -> None:
    found = check(SEATS, PRO, OLD)
    assert [claim.contested for claim in found.claims] == [False]
    assert found.details["contested"] == 0
    assert {one.text for one in found.claims[0].evidence} == {OLD}


@pytest.mark.parametrize(
    ("seen", "answers", "contested"),
    [(0.05, 0.95, True), (0.05, 0.05, False), (0.5, 0.05, True), (0.5, 0.002, False)],
)
def test_the_less_the_texts_together_contradict_the_surer_the_one_has_to_answer_the_question(
    seen: float, answers: float, contested: bool
) -> None:
    model = reading((0.99 - seen, 0.01, seen), answers)
    assert check(NEW, OLD, model=model).claims[0].contested is contested


def test_a_text_without_the_words_of_the_claim_contests_it_less() -> None:
    text = "From March 2025 it is $15 a month."
    model = reading((0.94, 0.01, 0.05), 0.8)
    known = {**ALONE, text: ALONE[NEW]}
    with pytest.MonkeyPatch.context() as at:
        at.setattr(f"{__name__}.ALONE", known)
        assert check(NEW, OLD, model=model).claims[0].contested
        assert not check(text, OLD, model=model).claims[0].contested


def test_the_text_that_contradicts_has_to_do_so_alone() -> None:
    assert not check(SEATS, OLD, model=reading(answers=0.99)).claims[0].contested


# -- What it costs ---------------------------------------------------------------------------------


def test_a_claim_that_is_surely_supported_costs_one_request() -> None:
    model = reading((0.98, 0.01, 0.01))
    assert not check(SEATS, NEW, OLD, model=model).claims[0].contested
    assert len(model.requests) == 1


def test_a_doubtful_claim_costs_a_request_for_each_of_three_texts_and_one_for_the_question() -> (
    None
):
    others = [f"The Basic plan is good, they say. ({at})" for at in range(5)]
    model = reading()
    assert check(*others, NEW, OLD, model=model).claims[0].contested
    assert len(model.requests) == 1 + 3 + 1


def test_a_text_is_asked_once_whether_it_answers_the_question() -> None:
    model = reading()
    found = check(NEW, OLD, model=model, answer=f"{CLAIM} The Basic plan costs 12 dollars.")
    assert [claim.contested for claim in found.claims] == [True, True]
    assert len(model.requests) == 2 + 2 * 2 + 1


USER = Document(NEW, metadata={"source": "user", "turn": 1})


@pytest.mark.parametrize(
    ("contexts", "question"),
    [([NEW, OLD], None), ([NEW, OLD], "  "), ([f"{NEW} {OLD}"], QUESTION), ([USER, OLD], QUESTION)],
    ids=["no question", "a blank question", "one reference", "what the user said"],
)
def test_nothing_is_sought_without_a_question_or_a_second_source(
    contexts: list[str], question: str | None
) -> None:
    model = reading()
    found = check(*contexts, model=model, question=question)
    assert not found.claims[0].contested
    assert len(model.requests) == 1


def test_nothing_is_sought_that_is_not_asked_for() -> None:
    model = reading()
    assert not check(NEW, OLD, model=model, if_contested="ignore").claims[0].contested
    assert len(model.requests) == 1


# -- What decides ----------------------------------------------------------------------------------


def test_a_contested_claim_can_fail() -> None:
    found = check(NEW, OLD, if_contested="fail")
    (claim,) = found.claims
    assert (claim.label, claim.contested, found.passed) == (C, True, False)
    assert found.score == claim.support == pytest.approx(0.02, abs=0.001)
    assert {one.label for one in claim.evidence} == {E, C}


DAY = date(2025, 3, 1)
MOMENT = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (DAY, DAY + timedelta(days=1)),
        (MOMENT, MOMENT + timedelta(minutes=1)),
        ("2025-03-01", "2025-03-02"),
        ("2025-03-01T10:00:00+02:00", "2025-03-01T09:00:00Z"),
        ("2025-03-01", MOMENT),
        (1_700_000_000, 1_700_000_001.5),
        (1_700_000_000, "2025-03-01"),
    ],
)
@pytest.mark.parametrize("if_contested", ["mark", "fail"])
def test_the_reference_with_the_later_date_decides(
    earlier: object, later: object, if_contested: str
) -> None:
    options: dict[str, Any] = {"newest_by": "date", "if_contested": if_contested}
    refuted = check(dated(OLD, earlier), dated(NEW, later), **options)
    confirmed = check(dated(OLD, later), dated(NEW, earlier), **options)
    assert [one.claims[0].label for one in (refuted, confirmed)] == [C, E]
    assert [one.passed for one in (refuted, confirmed)] == [False, True]
    assert [one.claims[0].contested for one in (refuted, confirmed)] == [True, True]
    assert confirmed.score == pytest.approx(0.97, abs=0.001)


@pytest.mark.parametrize(
    ("of_old", "of_new"),
    [
        ("2025-03-01", None),
        ("2025-03-01", "last spring"),
        ("2025-03-01", "2025-03-01"),
        ("2024", "2025"),
        (2024, 2025),
        (20240301, 20250301),
        ("2025-03-01", True),
        ("2025-03-01", ["2025-03-02"]),
        ("2025-03-01", float("nan")),
    ],
)
@pytest.mark.parametrize(("if_contested", "label"), [("mark", E), ("fail", C)])
def test_without_two_dates_that_differ_the_claim_is_contested_as_if_there_were_none(
    of_old: object, of_new: object, if_contested: str, label: ClaimLabel
) -> None:
    options: dict[str, Any] = {"newest_by": "date", "if_contested": if_contested}
    found = check(dated(OLD, of_old), dated(NEW, of_new), **options)
    assert (found.claims[0].label, found.claims[0].contested) == (label, True)


def test_the_key_of_the_date_is_yours() -> None:
    contexts = [dated(OLD, "2023-01-01", "as_of"), dated(NEW, "2025-03-01", "as_of")]
    assert check(*contexts, newest_by="as_of").claims[0].label is C
    assert check(*contexts, newest_by="date").claims[0].label is E


# -- When a reading fails --------------------------------------------------------------------------


def failing_at(what: str) -> Adapted:
    known = reading().script

    def script(stage: str, messages: Sequence[BaseMessage]) -> Any:
        text, claim = isolated("reference", messages), isolated("claim", messages)
        asked = "the question" if QUESTION.rstrip("?") in claim else text
        return AIMessage("?") if asked == what else known(stage, messages)

    return Adapted(script=script)


@pytest.mark.parametrize("what", [NEW, OLD, "the question"])
def test_a_claim_that_may_fail_is_undetermined_if_a_text_could_not_be_read(what: str) -> None:
    found = check(NEW, OLD, model=failing_at(what), if_contested="fail")
    assert (found.passed, found.undetermined) == (None, True)
    assert found.claims[0].label is None
    assert found.claims[0].error


@pytest.mark.parametrize("what", [NEW, OLD, "the question"])
def test_a_claim_that_is_only_marked_keeps_its_label_and_the_details_tell_what_is_unknown(
    what: str,
) -> None:
    found = check(NEW, OLD, model=failing_at(what))
    assert (found.passed, found.claims[0].contested) == (True, False)
    assert found.details["contested_unknown"] == 1


# -- In a guard ------------------------------------------------------------------------------------


def test_the_feedback_says_what_both_sides_say() -> None:
    found = check(NEW, OLD, if_contested="fail")
    (problem,) = Feedback(question=QUESTION, answer=CLAIM, evaluations=(found,)).problems
    assert problem.failure is Failure.CONTRADICTION
    assert "(the references disagree about it)" in problem.text
    assert problem.text.endswith(f'They say: "{NEW}" But also: "{OLD}"')


def test_a_guard_lets_nothing_through_that_fails_as_contested() -> None:
    def answered(question: str) -> dict[str, Any]:
        return {"answer": CLAIM, "context": [Document(NEW), Document(OLD)]}

    chain = RunnableLambda(answered)
    strict, marking = (
        Guard(chain, RefChecker(reading(), claims="sentences", if_contested=how), on_fail="abstain")
        for how in ("fail", "mark")
    )
    assert strict.invoke(QUESTION)["answer"] != CLAIM
    assert marking.invoke(QUESTION)["answer"] == CLAIM


def test_further_contexts_may_contest_a_claim_that_was_supported_before() -> None:
    judge = RefChecker(reading(), claims="sentences", if_contested="fail")
    fields = {"question": QUESTION, "answer": CLAIM}
    with within_scope(Scope()):
        before = judge.invoke({**fields, "contexts": [OLD, SEATS]})
        again = judge.invoke({**fields, "contexts": [OLD, SEATS]})
        after = judge.invoke({**fields, "contexts": [OLD, SEATS, NEW]})
    assert [one.passed for one in (before, again, after)] == [True, True, False]
    assert (again.usage.calls, again.details["contested"]) == (0, 0)
    assert after.claims[0].contested


# -- Which judge can -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"if_contested": "mark"}, {"newest_by": "date"}])
@pytest.mark.parametrize("checker", ["joint", "per_claim", "logprobs"])
def test_other_checkers_refuse_to_seek_them(checker: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="only the judge of 'local' is known to tell"):
        RefChecker(reading(), checker=checker, **options)
    assert check(NEW, OLD, checker=checker, if_contested="ignore").details["contested"] == 0


def test_a_date_decides_nothing_where_nothing_is_sought() -> None:
    with pytest.raises(ValueError, match="newest_by has no effect with if_contested='ignore'"):
        RefChecker(reading(), if_contested="ignore", newest_by="date")


def test_scores_that_an_argument_changes_have_other_fingerprints() -> None:
    def of(**options: Any) -> str:
        return RefChecker(reading(), **options).fingerprints["checker"]

    assert of() == of(if_contested="mark") == of(if_contested="ignore")
    others = [of(if_contested="fail"), of(newest_by="date"), of(newest_by="as_of")]
    assert len({of(), *others}) == 4
