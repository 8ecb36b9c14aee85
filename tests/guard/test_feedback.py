from __future__ import annotations

from demur import Claim, ClaimLabel, Evaluation, Evidence, Failure, Span
from demur.guard import Feedback

QUOTE = Evidence(
    context=0,
    span=Span(start=0, end=20),
    text="It is 84\nmetres tall.",
    label=ClaimLabel.CONTRADICTION,
)
HELD = Claim(text="tower stands in Lund", label=ClaimLabel.ENTAILMENT)
WRONG = Claim(text="tower is 97 metres", label=ClaimLabel.CONTRADICTION, evidence=(QUOTE,))
MISSING = Claim(text="tower has a lift", label=ClaimLabel.NEUTRAL)
REFUSED = Claim(text="tower is old", label=ClaimLabel.UNSUPPORTED)
UNLABELLED = Claim(text="tower is red", error="no label")


def feedback(*evaluations: Evaluation, question: str | None = "How tall?") -> Feedback:
    return Feedback(question=question, answer="so", evaluations=evaluations)


def failed(*claims: Claim, name: str = "checker", why: str = "") -> Evaluation:
    return Evaluation(name=name, passed=False, claims=claims, explanation=why)


def test_only_claims_that_are_known_to_fail_are_named_once() -> None:
    given = feedback(failed(HELD, WRONG, UNLABELLED), failed(MISSING, WRONG, name="other"))
    assert given.claims == (WRONG, MISSING)
    assert given.queries == ("tower is 97 metres", "tower has a lift")


def test_the_words_tell_contradicted_from_missing_and_quote_the_source() -> None:
    lines = feedback(failed(WRONG, MISSING, REFUSED)).text.splitlines()
    assert len(lines) == 3
    assert "Contradicted" in lines[0]
    assert '"It is 84 metres tall."' in lines[0]
    assert "Not in the sources: tower has a lift" in lines[1]
    assert "Not supported by the sources: tower is old" in lines[2]


def test_an_evaluator_without_claims_speaks_for_itself() -> None:
    given = feedback(failed(why="far too vague"), failed(name="length"), failed(WRONG, why="x"))
    assert "- far too vague" in given.text
    assert "- length rejects it." in given.text
    assert "- x" not in given.text


def test_without_claims_the_question_is_what_to_search_for() -> None:
    assert feedback(failed()).queries == ("How tall?",)
    assert feedback(failed(), question=None).queries == ("so",)


def test_each_problem_has_its_kind_its_evidence_and_what_to_search_for() -> None:
    vague = Evaluation(name="fewl", passed=False, failure=Failure.VAGUE, explanation="vague")
    given = feedback(failed(HELD, WRONG, MISSING), vague, failed(name="length"))
    assert [
        (one.failure, one.evaluator, one.query, one.evidence, one.claim) for one in given.problems
    ] == [
        (Failure.CONTRADICTION, "checker", "tower is 97 metres", (QUOTE,), WRONG),
        (Failure.NEUTRAL, "checker", "tower has a lift", (), MISSING),
        (Failure.VAGUE, "fewl", "How tall?", (), None),
        (Failure.OTHER, "length", "How tall?", (), None),
    ]
    assert given.failures == (*(one.failure for one in given.problems),)
    assert given.queries == ("tower is 97 metres", "tower has a lift")
    assert given.text.splitlines() == [f"- {' '.join(one.text.split())}" for one in given.problems]


def test_an_instruction_comes_first() -> None:
    given = feedback(failed(why="bad")).model_copy(update={"instruction": "Name the year."})
    assert given.text == "Name the year.\n- bad"


def test_the_words_differ_from_attempt_to_attempt() -> None:
    texts = {
        feedback(failed(WRONG)).model_copy(update={"attempt": number}).text
        for number in (1, 2, 3, 4)
    }
    assert len(texts) == 4
    assert all("Contradicted" in text for text in texts)


def test_of_an_answer_that_contradicts_itself_no_part_is_named_as_wrong() -> None:
    both = failed(WRONG, MISSING, name="itself", why="It says A and also B.").model_copy(
        update={"failure": Failure.SELF_CONTRADICTION}
    )
    given = feedback(both)
    assert [(one.failure, one.claim, one.text) for one in given.problems] == [
        (Failure.SELF_CONTRADICTION, None, "It says A and also B.")
    ]
    assert (given.claims, given.queries) == ((), ("How tall?",))
