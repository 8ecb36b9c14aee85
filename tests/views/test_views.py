"""Test what views of evaluations, attempts, traces and records show, and where links lead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from demur import Calculation, Claim, ClaimLabel, Evaluation, Evidence, MissingString, Span
from demur._secrets import SECRET
from demur.guard import Attempt, Guarded, Trace
from demur.observe.redaction import redactor
from demur.views.answers import attempt_html
from demur.views.evaluations import evaluation_html
from demur.views.traces import record_html, trace_html
from support.html import Page
from support.records import (
    ANSWER,
    BEGIN,
    PASSAGE,
    QUESTION,
    WRONG,
    attempt,
    found,
    guarded,
    nothing_to_check,
    refuted,
    run,
    scored,
    undetermined,
)

GOOD, DOUBT, BAD = ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL, ClaimLabel.CONTRADICTION
LONG = "The Danube is 2,850 km long."


def claim(
    label: ClaimLabel | None,
    said: str,
    answer: str,
    *evidence: Evidence,
    text: str = "a claim",
    **fields: Any,
) -> Claim:
    """Return a claim whose place in the answer is that of `said`."""
    at = answer.index(said)
    span = Span(start=at, end=at + len(said))
    return Claim(text=text, label=label, span=span, evidence=evidence, **fields)


def evidence(
    text: str, context: int | None = 0, start: int = 0, label: ClaimLabel = BAD
) -> Evidence:
    span = Span(start=start, end=start + len(text))
    return Evidence(context=context, span=span, text=text, label=label)


def view(
    *claims: Claim, answer: str = WRONG, contexts: Sequence[str] = (PASSAGE,), **fields: Any
) -> Page:
    """Return the page of an attempt that one evaluator has judged."""
    judged = found(claims=claims, passed=False, score=0.0)
    return Page(attempt_html(attempt(judged, answer=answer, contexts=contexts, **fields)))


# --- An evaluation --------------------------------------------------------------------------------


def test_an_evaluation_tells_verdict_claims_evidence_and_cost() -> None:
    shares = {GOOD: 0.02, DOUBT: 0.05, BAD: 0.93}
    told = claim(
        BAD,
        "4,000 km",
        WRONG,
        evidence("2,850 km"),
        text="It is 4,000 km long",
        probabilities=shares,
        triplet=("Danube", "length", "4,000 km"),
    )
    other = evidence("a known text", context=None)
    page = Page(
        evaluation_html(
            found(
                score=0.25,
                passed=False,
                label="Contradiction",
                explanation="1 of 4 claims holds.",
                claims=(told, claim(DOUBT, "mayor", WRONG), Claim(text="x", evidence=(other,))),
            )
        )
    )
    assert page.texts("demur-head") == ["RefChecker✗ failedContradiction · score 0.25"]
    assert page.texts("demur-explanation") == ["1 of 4 claims holds."]
    assert page.texts("demur-claim-text") == ["It is 4,000 km long", "a claim", "x"]
    labels = page.all("demur-label")[1:]
    assert [one["text"] for one in labels] == ["✗ Contradiction 93%", "○ Neutral", "? no label"]
    kinds = ["demur-bad", "demur-doubt", "demur-open"]
    assert [one["class"].split()[1] for one in labels] == kinds
    assert labels[0]["title"] == "Entailment 2.0%, Neutral 5.0%, Contradiction 93.0%"
    assert page.texts("demur-triplet") == ["Danube → length → 4,000 km"]
    quotes = ["“2,850 km” reference 1", "“a known text” reference, Contradiction"]
    assert page.texts("demur-quote") == quotes
    assert page.texts("p")[-1] == "2 calls, 900 + 60 tokens, 1.5 s"
    assert not page.all("a")


@pytest.mark.parametrize(
    ("evaluation", "told"),
    [
        (undetermined(why="no model"), "RefChecker? undetermined"),
        (nothing_to_check(), "RefChecker– nothing to check"),
        (found("FEWL", -0.5, None), "FEWL• scoredscore -0.50"),
        (found("Judge", None, True, label="factual"), "Judge✓ passedfactual"),
    ],
)
def test_what_decides_nothing_says_so(evaluation: Evaluation, told: str) -> None:
    page = Page(evaluation_html(evaluation))
    assert page.texts("demur-head") == [told]
    assert page.texts("demur-why") == ([evaluation.error] if evaluation.error else [])
    assert not page.all("demur-claims")


# --- An answer ------------------------------------------------------------------------------------


def test_a_claim_leads_to_its_evidence_and_all_lead_back() -> None:
    page = view(claim(BAD, "The Danube is 4,000 km long", WRONG, evidence("2,850 km", start=14)))
    mark = page.all("demur-mark")[0]
    assert (mark["tag"], mark["text"]) == ("a", "The Danube is 4,000 km long")
    assert mark["title"] == "1. Contradiction: a claim\nreference 1 · rivers.txt: “2,850 km”"
    there = page.behind(mark)
    assert (there["tag"], there["text"]) == ("mark", "2,850 km")
    in_answer, in_reference = page.all("demur-note")
    assert in_answer["text"] == in_reference["text"] == "✗1"
    links = [one for one in page.all("a") if "aria-label" in one]
    assert [page.behind(link)["class"] for link in links] == [
        "demur-claim demur-bad",
        "demur-mark demur-bad",
        "demur-claim demur-bad",
    ]
    (quote,) = [one for one in page.all("a") if one["text"] == "reference 1 · rivers.txt"]
    assert page.behind(quote) is there
    same = [one["class"].split()[0] for one in page.elements if one.get("data-claim") == "1"]
    assert same == ["demur-mark", "demur-note", "demur-claim", "demur-mark", "demur-note"]


def test_a_claim_without_evidence_in_a_reference_leads_to_the_list() -> None:
    page = view(
        claim(DOUBT, "the mayor of Ulm", WRONG),
        claim(BAD, "4,000 km", WRONG, evidence("gold", None), evidence("lost", 7)),
    )
    links = [one for one in page.all("demur-mark") if one["tag"] == "a"]
    assert [page.behind(one)["data-claim"] for one in links] == ["2", "1"]
    assert all(page.behind(one)["tag"] == "li" for one in links)
    assert page.texts("demur-quote") == ["“gold” reference", "“lost” reference 8"]


def test_overlapping_claims_look_as_the_worst_and_are_all_in_reach() -> None:
    page = view(
        claim(GOOD, "The Danube is 4,000 km long", WRONG),
        claim(BAD, "4,000 km long, says the mayor", WRONG),
        claim(DOUBT, "4,000 km", WRONG),
    )
    marks = page.all("demur-mark")
    assert [(one["text"], one["class"].split()[1], one["data-claim"]) for one in marks] == [
        ("The Danube is ", "demur-good", "1"),
        ("4,000 km", "demur-bad", "1 2 3"),
        (" long", "demur-bad", "1 2"),
        (", says the mayor", "demur-bad", "2"),
    ]
    assert [one.get("tabindex") for one in marks] == [None, None, "-1", "-1"]
    assert page.one("demur-spot")["text"] == "4,000 km"
    assert page.texts("demur-note") == ["○3", "✓1", "✗2"]
    back = [one for one in page.all("a") if one.get("title") == "to its place in the answer"]
    assert [page.behind(one)["text"] for one in back] == ["The Danube is ", "4,000 km", "4,000 km"]


def test_evidence_of_several_claims_is_marked_once_for_each() -> None:
    page = view(
        claim(BAD, "4,000 km", WRONG, evidence(PASSAGE[:26])),
        claim(GOOD, "Danube", WRONG, evidence(PASSAGE[:26], label=GOOD)),
        claim(GOOD, "The", WRONG, evidence(PASSAGE[14:40], start=14, label=GOOD)),
    )
    marks = page.all("mark")
    assert [(one["text"], one["data-claim"]) for one in marks] == [
        (PASSAGE[:14], "1 2"),
        (PASSAGE[14:26], "1 2 3"),
        (PASSAGE[26:40], "3"),
    ]
    targets = {page.behind(one)["text"] for one in page.all("demur-mark") if "href" in one}
    assert targets == {PASSAGE[:14], PASSAGE[14:26]}


def test_evidence_that_was_moved_is_found_and_other_text_is_not_marked() -> None:
    said = (claim(BAD, "4,000 km", WRONG, evidence("2,850 km", start=3)),)
    assert view(*said).texts("mark") == ["2,850 km"]
    assert not view(*said, contexts=("2,850 km, or 2,850 km",)).all("mark")
    assert not view(*said, contexts=("Nothing of it",)).all("mark")


def test_strings_that_stand_in_no_reference_are_marked_and_told_on_hovering() -> None:
    fine = claim(GOOD, "The Danube", WRONG)
    missing = MissingString(string="<b>4,000</b>\x1b km", nearest="2,850")
    wrong = claim(BAD, "4,000 km", WRONG, missing_strings=(missing,))
    page = view(fine, wrong)
    line = '"<b>4,000</b>␛ km" stands in no reference, where "2,850" is the most similar'
    assert page.texts("demur-why") == [line]
    assert "exact strings" in page.one("demur-why")["title"]
    hovered = [one["title"] for one in page.elements if "a claim" in one.get("title", "")]
    assert [line in title for title in hovered] == [False, True]


def test_a_calculation_is_told_with_the_figure_that_it_refutes() -> None:
    refuted, fine = (
        Calculation(figure="<b>80%", follows=follows, text="252 of 360\x1b is 70 %", operands=())
        for follows in (False, True)
    )
    shares = {GOOD: 0.9, DOUBT: 0.05, BAD: 0.05}
    wrong, right = (
        claim(label, said, WRONG, calculations=(one,), probabilities=shares)
        for label, said, one in ((BAD, "4,000 km", refuted), (GOOD, "The Danube", fine))
    )
    page = view(wrong, right)
    told = ["252 of 360␛ is 70 %, not <b>80%", "252 of 360␛ is 70 %"]
    assert page.texts("demur-why") == told
    assert all("calculations" in one["title"] for one in page.all("demur-why"))
    # The judge's share of a label that is not the judge's would mislead.
    assert [one["text"] for one in page.all("demur-label")[1:]] == [
        "✗ Contradiction",
        "✓ Entailment 90%",
    ]
    missing = (MissingString(string="AB-1", nearest=None),)
    own = claim(
        BAD,
        "4,000 km",
        WRONG,
        missing_strings=missing,
        probabilities={**shares, GOOD: 0.05, BAD: 0.9},
    )
    assert view(own).all("demur-label")[1]["text"] == "✗ Contradiction 90%"


def test_an_answer_without_places_is_plain_and_shown_once() -> None:
    nowhere = Claim(text="a claim", label=DOUBT)
    beyond = Claim(text="b", label=DOUBT, span=Span(start=5, end=5_000))
    empty = Claim(text="c", label=DOUBT, span=Span(start=5, end=5))
    page = view(nowhere, beyond, empty)
    assert page.texts("demur-answer") == ["Answer" + WRONG]
    assert not page.all("demur-mark")
    assert page.texts("demur-number") == ["1", "2", "3"]


def test_without_evaluators_question_and_references_it_is_the_answer() -> None:
    page = Page(attempt_html(attempt(question=None, contexts=(), verdict="passed")))
    assert page.texts("article") == ["Answer" + ANSWER + "No evaluator judged it."]


def test_each_evaluator_with_places_shows_the_answer_and_numbers_go_on() -> None:
    one = found("FEWL", 0.5, None)
    two = found("A", claims=(claim(GOOD, "Danube", WRONG), claim(BAD, "4,000", WRONG)))
    three = found("B", claims=(claim(DOUBT, "Ulm", WRONG),))
    page = Page(attempt_html(attempt(one, two, three, answer=WRONG)))
    heads = [text for text in page.texts("demur-title") if text.startswith("Answer")]
    assert heads == ["Answer, as A reads it", "Answer, as B reads it"]
    assert page.texts("demur-number") == ["1", "2", "3"]
    assert page.texts("demur-name") == ["A", "B", "FEWL"]


def test_sentences_of_a_stream_share_one_answer() -> None:
    parts = [found(claims=(claim(GOOD, said, WRONG),)) for said in ("Danube", "mayor")]
    page = Page(attempt_html(attempt(*parts, answer=WRONG)))
    assert len(page.all("demur-answer")) == 1
    assert [one["text"] for one in page.all("demur-mark")] == ["Danube", "mayor"]
    assert [text[:16] for text in page.texts("demur-head")] == [
        "RefChecker1 of 2",
        "RefChecker2 of 2",
    ]


def test_long_references_are_folded_around_what_is_marked() -> None:
    before, after = "Before it. " * 5_000, "After it. " * 5_000
    proof = evidence(LONG, start=len(before))
    alone = "Nothing of it. " * 100
    page = view(
        claim(BAD, "4,000 km", WRONG, proof), contexts=(before + LONG + after, alone, "short")
    )
    first, second, third = page.texts("demur-reference")
    for text in (before[:20], LONG, after[-20:]):
        assert text in first
    assert len(page.all("details")) == 3
    assert all(LONG not in text for text in page.texts("details"))
    shown = len(first) - sum(len(text) for text in page.texts("details")[:2])
    assert shown < 1_000
    assert "more characters" in second
    assert "more characters" not in third


def test_sources_are_named() -> None:
    from langchain_core.documents import Document

    kept = attempt(found())
    names = [
        Document(page_content="x", metadata={"title": "Rivers", "source": "r.txt"}),
        Document(page_content="x", metadata={"source": 7}),
        Document(page_content="x", metadata={"source": " a\nb "}),
    ]
    page = Page(attempt_html(kept.model_copy(update={"contexts": tuple(names)})))
    assert page.texts("cite") == ["reference 1 · Rivers", "reference 2", "reference 3 · a b"]


# --- Traces and records ---------------------------------------------------------------------------


def test_a_trace_tells_what_the_guard_did_between() -> None:
    record = guarded()
    last = record.attempts[-1]
    new = attempt(*last.evaluations, contexts=(PASSAGE, "Another one."))
    last = last.model_copy(update={"contexts": new.contexts})
    record = record.model_copy(update={"attempts": (record.attempts[0], last)})
    page = Page(trace_html(_trace(record.attempts, outcome="recovered", limit="attempts")))
    heads = page.texts("demur-head")
    assert heads[0] == "The guard’s call↻ recoveredit was so (limit: attempts)"
    assert heads[1].startswith("Answer 1 of 2✗ failed1 call")
    said = "The guard asked for another answer; the chain answered again, told what was wrong."
    assert page.one("demur-between")["text"].startswith(said)
    told = page.one("demur-between")["text"]
    assert "Contradicted by the sources: The Danube is 4,000 km long" in told
    # Both attempts have the same question.
    assert page.texts("demur-question") == ["Question" + QUESTION]
    assert page.texts("demur-source") == [
        "reference 1 · rivers.txt",
        "reference 1 · rivers.txt",
        "reference 2 · rivers.txtnew",
    ]
    assert page.one("time")["text"] == "2026-11-20 10:00:00 UTC"
    assert "took 4.0 s" in page.texts("p")[1]


def test_what_came_back_is_shown_where_it_is_none_of_the_answers() -> None:
    trace = _trace((attempt(refuted(), answer=WRONG),), outcome="abstained")
    assert "I do not know." in Guarded({"answer": "I do not know."}, trace)._repr_html_()
    assert "Returned" in Guarded("I do not know.", trace)._repr_html_()
    for output in (WRONG, {"answer": WRONG}, object()):
        assert "Returned" not in Guarded(output, trace)._repr_html_()


def test_a_record_tells_what_run_it_was() -> None:
    record = scored(tags=("prod", "eu"), metadata={"user": 42}, name="rag")
    page = Page(record_html(record))
    assert page.texts("demur-quiet")[:2] == [
        "2026-11-20 10:00:00 UTC · rag · gpt-4o-mini · prodeu",
        "3 calls, 1,300 + 90 tokens, 2.3 s of answering and judging; took 1.2 s",
    ]
    assert page.texts("demur-tag") == ["prod", "eu"]
    facts = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert facts == {"run": record.id, "user": "42"}
    assert len(page.all("demur-head")) == 1  # There is no guard, and only one answer.


def test_a_guards_record_without_an_end_was_cut_short() -> None:
    first = attempt(refuted())
    page = Page(record_html(run(first, attempt(found()), outcome=None, reason=None)))
    assert page.texts("demur-head")[0] == "The guard’s call… cut short"


def test_of_a_redacted_record_no_place_is_believed() -> None:
    record = scored(found(claims=(claim(BAD, "4,000 km", WRONG),)), answer=WRONG)
    assert Page(record_html(record)).all("demur-mark")
    for how in ("remove", "hash", str.upper):
        page = Page(record_html(redactor(how)(record)))  # type: ignore[arg-type]  # one of a list
        assert not page.all("demur-mark")
        assert "claims cannot be shown in their places" in page.one("demur-why")["text"]


def test_places_behind_a_credential_that_was_taken_out_are_not_believed() -> None:
    answer = "It is 7 km long. The key is sk-proj-abCD1234efGH5678ijKL9, says Ulm."
    claims = (claim(GOOD, "7 km", answer), claim(GOOD, "says Ulm", answer))
    record = redactor()(scored(found(claims=claims), answer=answer))
    assert SECRET in record.answer
    assert not record.redacted
    page = Page(record_html(record))
    assert page.texts("demur-mark") == ["7 km"]
    assert page.texts("demur-claim-text") == ["a claim", "a claim"]


def _trace(attempts: Sequence[Attempt], **fields: Any) -> Trace:
    usage = attempts[0].usage
    given = {"outcome": "passed", "reason": "it was so", "seconds": 4, "time": BEGIN, **fields}
    return Trace.model_validate({**given, "attempts": tuple(attempts), "usage": usage})
