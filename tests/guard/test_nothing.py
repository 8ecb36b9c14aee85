"""Test answers with nothing to check: they never count as passed, and leave only if allowed."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from demur import (
    Annotate,
    AnswerRejected,
    Block,
    Claim,
    ClaimLabel,
    DemurError,
    Evaluation,
    Failure,
    Guard,
    RefChecker,
    Regenerate,
    Sample,
)
from demur.guard import REFUSAL, UNCHECKED, Feedback, verdict_of
from demur.runtime import Steps
from demur.schema import ABSTAIN
from support.fakes import scripted
from support.guarded import Chain, Heard, judge, traced
from support.streams import ByClaims, Client, Telling, guard

SILENT = "I don't know."
NOTHING = Evaluation(name="checker", label=ABSTAIN, explanation="Nothing.")


def checker(sample: Sample) -> Evaluation:
    """Find nothing to check in an answer with "know" in it; judge others as `judge` does."""
    return NOTHING if "know" in sample.answer else judge(sample)


# --- The outcome of such an answer ---------------------------------------------------------------


def test_it_goes_through_and_is_not_called_passed() -> None:
    output = {"answer": SILENT, "context": ["x"]}
    found = traced(Guard(Chain(output), checker), {})
    assert found.output is output
    (attempt,) = found.trace.attempts
    assert (found.trace.outcome, attempt.verdict) == ("nothing_to_check", "nothing_to_check")
    assert found.trace.reason == "attempt 1 states nothing that could be checked"


def test_it_needs_no_contexts() -> None:
    refchecker = RefChecker(scripted("No claims"), checker="joint")
    found = traced(Guard(Chain(SILENT), refchecker), "why?")
    assert (found.output, found.trace.outcome) == (SILENT, "nothing_to_check")


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ("", "nothing_to_check"),
        ("n", "nothing_to_check"),
        ("nn", "nothing_to_check"),
        ("np", "passed"),
        ("pn", "passed"),
        ("nf", "failed"),
        ("nu", "undetermined"),
        ("pu", "undetermined"),
        ("ns", "scored"),
        ("ps", "scored"),
        ("nfu", "failed"),
    ],
)
def test_the_verdict_on_an_answer(findings: str, verdict: str) -> None:
    assert verdict_of([_FOUND[one] for one in findings]) == verdict


_FOUND = {
    "n": NOTHING,
    "p": Evaluation(name="p", passed=True),
    "f": Evaluation(name="f", passed=False),
    "u": Evaluation(name="u", error="e"),
    "s": Evaluation(name="s", score=0.5),
}


@pytest.mark.parametrize(
    ("findings", "evaluators", "verdict"),
    [
        ("", 1, "failed"),
        ("n", 1, "failed"),
        ("p", 1, "passed"),
        ("np", 2, "failed"),  # These are of one answer.
        ("np", 1, "passed"),  # These are of its sentences.
        ("nppp", 2, "passed"),
        ("npnp", 2, "failed"),
        ("nu", 1, "undetermined"),
        ("nu", 2, "failed"),
        ("us", 2, "undetermined"),
    ],
)
def test_the_verdict_where_it_fails(findings: str, evaluators: int, verdict: str) -> None:
    found = [_FOUND[one] for one in findings]
    assert verdict_of(found, "fail", evaluators) == verdict


CLAIM = Claim(text="It is tall.", label=ClaimLabel.CONTRADICTION)


@pytest.mark.parametrize(
    "given", [{"score": 0.0}, {"score": 1.0}, {"claims": (CLAIM,)}], ids=["0", "1", "claims"]
)
def test_the_label_alone_lets_nothing_through(given: dict[str, Any]) -> None:
    foreign = Evaluation(name="foreign", label=ABSTAIN, **given)
    assert foreign.finding == "scored"
    with pytest.raises(DemurError, match="scores answers but decides nothing"):
        Guard(Chain("bad"), lambda _: foreign).invoke("why?")


# --- on_abstain="fail" ---------------------------------------------------------------------------


def failing(chain: Any, *evaluators: Any, **options: Any) -> Guard[Any, Any]:
    return Guard(chain, *(evaluators or [checker]), on_abstain="fail", **options)


def test_it_is_answered_again_and_told_so() -> None:
    feedbacks: list[Feedback] = []

    def tell(given: Any, feedback: Feedback) -> Any:
        feedbacks.append(feedback)
        return given

    found = traced(failing(Chain(SILENT, "good"), on_fail=Regenerate(tell)), "why?")
    assert (found.output, found.trace.outcome) == ("good", "recovered")
    assert [one.verdict for one in found.trace.attempts] == ["failed", "passed"]
    (feedback,) = feedbacks
    assert feedback.failures == (Failure.NOTHING,)
    assert feedback.text == "- It states nothing that could be checked."
    assert feedback.queries == ("why?",)


def test_the_policy_can_name_it() -> None:
    heard = Heard()
    policy = {"nothing_to_check": Regenerate(), "any": Block()}
    guarded = failing(Chain(SILENT, "good"), on_fail=policy)
    assert guarded.invoke("why?", {"callbacks": [heard]}) == "good"
    (decided,) = (data for name, data in heard.events if name == "demur.decision")
    assert decided == {
        "attempt": 1,
        "verdict": "failed",
        "action": "regenerate",
        "failures": ["nothing_to_check"],
    }
    with pytest.raises(AnswerRejected, match="attempt 1 was rejected"):
        failing(Chain("bad"), on_fail=policy).invoke("why?")
    with pytest.raises(AnswerRejected):
        failing(Chain(SILENT), on_fail={"other": Regenerate(), "end": Block()}).invoke("why?")


@pytest.mark.parametrize("evaluators", [[checker], [checker, lambda _: _FOUND["p"]]])
def test_at_the_end_it_is_what_the_policy_says(evaluators: list[Any]) -> None:
    found = traced(failing(Chain(SILENT), *evaluators), "why?")
    assert (found.output, found.trace.outcome) == (REFUSAL, "abstained")
    with pytest.raises(AnswerRejected, match=r"attempt 1 was rejected\.$"):
        failing(Chain(SILENT), *evaluators, on_fail="block").invoke("why?")
    noted = traced(failing(Chain(SILENT), *evaluators, on_fail=Annotate()), "why?")
    assert noted.trace.outcome == "best_effort"
    assert noted.output.endswith("\n- It states nothing that could be checked.")


# --- Streams of sentences ------------------------------------------------------------------------


class BySentence(ByClaims):
    """Find nothing to check in a sentence with "know" in it; judge others as `ByClaims` does."""

    key: str = "know"

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        found = yield from super()._steps(sample)
        return NOTHING if self.key in sample.answer else found


TEXTS = {
    "nothing at all": ("I don't know. You know best.",),
    "nothing, then something": ("You know me. One is good.",),
    "something, then nothing": ("One is good. You know me.",),
    "something in the middle": ("You know me. One is good. You know best. Two is good.",),
    "something that does not hold": ("You know me. One is bad. Two is good.", "All is good."),
    "nothing, then an answer": ("I don't know. You know best.", "All is good."),
    "an answer that was bad, then nothing": ("One is bad.", "I don't know."),
    "something that cannot be told": ("You know me. One is odd.",),
}
OUTCOMES = {
    ("nothing at all", "pass"): "nothing_to_check",
    ("nothing at all", "fail"): "abstained",
    ("nothing, then an answer", "pass"): "nothing_to_check",
    ("nothing, then an answer", "fail"): "recovered",
    ("an answer that was bad, then nothing", "pass"): "nothing_to_check",
    ("an answer that was bad, then nothing", "fail"): "abstained",
    ("something that does not hold", "pass"): "recovered",
    ("something that does not hold", "fail"): "recovered",
    ("something that cannot be told", "pass"): "evaluator_failed",
    ("something that cannot be told", "fail"): "evaluator_failed",
}


@pytest.mark.parametrize("on_error", ["open", "closed"])
@pytest.mark.parametrize("on_abstain", ["pass", "fail"])
@pytest.mark.parametrize("case", TEXTS)
def test_a_stream_comes_to_what_its_sentences_come_to(
    case: str, on_abstain: Any, on_error: Any
) -> None:
    ended = Heard()

    class Both(Client):
        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            super().on_custom_event(name, data, **kwargs)
            ended.on_custom_event(name, data)

    options = {"on_abstain": on_abstain, "on_error": on_error}
    client = Both().read(guard(Telling(*TEXTS[case]), BySentence(), **options), "why?")
    (outcome,) = (data["outcome"] for name, data in ended.events if name == "demur.outcome")
    assert outcome == OUTCOMES.get((case, on_abstain), "passed")
    if outcome in ("passed", "nothing_to_check", "recovered"):
        assert client.text == TEXTS[case][-1 if outcome == "recovered" or case[:2] == "an" else 0]
    elif outcome == "abstained":
        assert client.received == REFUSAL  # No word of the answer was seen.
    else:
        assert client.text == (TEXTS[case][0] if on_error == "open" else UNCHECKED)


@pytest.mark.parametrize("on_abstain", ["pass", "fail"])
def test_a_sentence_that_states_nothing_waits_where_one_has_to_pass(on_abstain: Any) -> None:
    text = "You know me. One is good. You know it."
    left, third, early = threading.Event(), threading.Event(), list[str]()
    client = Client()
    client.on_text = lambda text: left.set()

    def passes(sample: Sample) -> bool:
        if "good" in sample.answer:
            early.append(client.text)
        if "it." in sample.answer:
            third.set()
        return True

    until = left if on_abstain == "pass" else third
    by = BySentence(passes=passes, hold=lambda answer: until if "good" in answer else None)
    client.read(guard(Telling(text), by, on_abstain=on_abstain), "why?")
    assert client.text == text
    assert early == ["You know me." if on_abstain == "pass" else ""]
