"""Test yes-or-no judges at an endpoint: how they are asked, read and refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from demur import (
    CallPolicy,
    Cascade,
    CitationSupport,
    ClaimLabel,
    Evaluation,
    Failure,
    RefChecker,
    Sample,
)
from demur.recording import open_recording
from demur.similarity import NAMED, YesNoJudge
from demur_research.texts.injections import CASES, INJECTIONS, placed
from support import facts
from support.answering import ASKED, answering, claim_of, reply_of
from support.fakes import scripted
from support.faults import FAULTS, Faulty
from support.openai_server import Answer, Script, openai_server
from support.tiny import tiny_classifier, torch_models, with_torch

__all__ = ["torch_models"]

E, U = ClaimLabel.ENTAILMENT, ClaimLabel.UNSUPPORTED
AT_ENDPOINTS = [name for name, one in NAMED.items() if one.judge.weights is None]
CLAIMS = ("The office opens at nine.", "The office closes at noon.")
SAMPLE = Sample(
    question="When does it open?",
    answer=" ".join(CLAIMS),
    contexts=["Open from nine on."],
)


def ask(script: Script | list[Answer | str], judge: Any = ASKED, **options: Any) -> Evaluation:
    with openai_server(script) as server:
        return RefChecker(server.model(), checker=judge, **options).invoke(SAMPLE)


def open_at_nine(request: dict[str, Any], number: int) -> Answer:
    """Say yes to the first claim alone, without log-probabilities."""
    return Answer("Yes" if "nine" in claim_of(request) else "No", finish_reason="length")


def sure(word: str, share: float, other: str) -> Answer:
    logprobs = {word: math.log(share), other: math.log(1 - share)}
    return Answer(word, first_token=logprobs, finish_reason="length")


# --- What is asked -------------------------------------------------------------------------------


def requests_of(name: str) -> list[dict[str, Any]]:
    """Return the requests about the two claims of `SAMPLE`, in order."""
    with openai_server([reply_of(name, True)]) as server:
        found = RefChecker(server.model(), checker=name).invoke(SAMPLE)
    assert [claim.label for claim in found.claims] == [E, E], found.error
    return sorted(server.requests, key=lambda one: CLAIMS[1] in json.dumps(one))


@pytest.mark.parametrize("name", AT_ENDPOINTS)
def test_every_named_judge_is_asked_about_each_claim_with_its_template(name: str) -> None:
    for request, claim in zip(requests_of(name), CLAIMS, strict=True):
        said = json.dumps(request)
        assert SAMPLE.contexts[0].page_content in said
        assert said.count(claim) == 1
        assert "{" not in " ".join(str(one["content"]) for one in request["messages"]) or (
            name == "lynx"
        )
        assert request["max_completion_tokens"] >= 1


def test_a_guardian_gets_the_document_as_its_own_template_wants_it() -> None:
    request, _ = requests_of("granite-guardian")
    assert request["documents"] == [{"doc_id": "0", "text": "Open from nine on."}]
    assert request["messages"] == [{"role": "assistant", "content": "The office opens at nine."}]
    config = request["chat_template_kwargs"]
    assert config == {"guardian_config": {"criteria_id": "groundedness"}, "think": False}


def test_roles_that_no_chat_model_has_reach_the_server() -> None:
    request, _ = requests_of("granite3-guardian")
    assert [(one["role"], one["content"]) for one in request["messages"]] == [
        ("system", "groundedness"),
        ("context", "Open from nine on."),
        ("assistant", "The office opens at nine."),
    ]


def test_a_judge_that_reads_the_question_gets_it_if_there_is_one() -> None:
    request, _ = requests_of("lynx")
    assert "\nWhen does it open?\n" in request["messages"][0]["content"]
    with openai_server([reply_of("lynx", True)]) as server:
        checker = RefChecker(server.model(), checker="lynx")
        checker.invoke(SAMPLE.model_copy(update={"question": None}))
    assert "{question}" not in server.prompts()[0]


def test_a_report_of_an_action_has_the_limit_of_the_judge() -> None:
    call = {"name": "send_mail", "args": {"to": "Dana"}, "id": "c"}
    state = {
        "messages": [
            HumanMessage("Write to Dana."),
            AIMessage("", tool_calls=[call]),
            ToolMessage("sent", tool_call_id="c"),
            AIMessage("I sent the mail to Dana."),
        ]
    }
    with openai_server([sure("Yes", 0.65, "No")]) as server:
        found = RefChecker(server.model(), checker=ASKED, claims="sentences").invoke(state)
    assert found.passed is True
    assert [claim.support for claim in found.claims] == [pytest.approx(0.65)]


# --- What is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AT_ENDPOINTS)
@pytest.mark.parametrize("supported", [True, False])
def test_every_named_judge_is_read_in_its_direction(name: str, supported: bool) -> None:
    found = ask([reply_of(name, supported)], name)
    assert [claim.label for claim in found.claims] == [E if supported else U] * 2
    assert found.passed is supported
    assert found.label == (E if supported else U).value


def test_what_is_not_supported_is_called_neither_neutral_nor_contradicted() -> None:
    found = ask(open_at_nine)
    assert [claim.label for claim in found.claims] == [E, U]
    assert (found.label, found.passed, found.score) == ("Unsupported", False, 0.5)
    assert found.failures == (Failure.UNSUPPORTED,)
    assert found.details["counts"] == {
        **{"Entailment": 1, "Neutral": 0, "Contradiction": 0, "Unsupported": 1}
    }
    assert "not supported by them, and perhaps contradicted" in found.explanation
    assert "Unsupported: The office closes at noon." in str(found)


def test_log_probabilities_are_the_support_and_a_threshold_moves_the_limit() -> None:
    for threshold, label in (("auto", E), (0.75, U)):
        found = ask([sure("Yes", 0.7, "No")], threshold=threshold)
        assert [claim.support for claim in found.claims] == pytest.approx([0.7, 0.7])
        assert {claim.label for claim in found.claims} == {label}
        assert found.score == pytest.approx(0.7)
    assert ask([sure("No", 0.7, "Yes")]).score == pytest.approx(0.3)


def test_the_limit_of_the_judge_holds_for_its_log_probabilities() -> None:
    found = ask([sure("Yes", 0.7, "No")], replace(ASKED, limit=0.8))
    assert {claim.label for claim in found.claims} == {U}


def test_a_guardians_probability_is_that_of_its_word_between_the_tags() -> None:
    no = {" no": math.log(0.9), " yes": math.log(0.1)}
    tokens = [{">": -0.1}, no, {" </": -0.1}, {"score": -0.1}, {">": -0.1}]
    reply = Answer("<score> no </score>", first_token={"<score": -0.1}, later_tokens=tokens)
    found = ask([reply], "granite-guardian")
    assert [claim.support for claim in found.claims] == pytest.approx([0.9, 0.9])
    assert found.passed is True


def test_an_endpoint_that_refuses_log_probabilities_is_asked_for_the_word() -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        if request.get("logprobs"):
            return Answer("logprobs are not supported", status=400)
        return open_at_nine(request, number)

    with openai_server(script) as server:
        found = RefChecker(server.model(), checker=ASKED).invoke(SAMPLE)
    assert [claim.label for claim in found.claims] == [E, U]
    assert len(server.requests) == 4


def test_a_threshold_without_log_probabilities_decides_nothing() -> None:
    found = ask(open_at_nine, threshold=0.7)
    assert found.undetermined
    assert "gives no log-probabilities" in str(found.error)


@pytest.mark.parametrize(
    "reply",
    ["Maybe", "", "Not sure.", "Yes and no", "Yes, but not at noon", "Nope", "Entailment", "1"],
)
def test_a_reply_that_is_neither_yes_nor_no_is_undetermined(reply: str) -> None:
    found = ask([reply])
    assert found.undetermined
    assert [claim.label for claim in found.claims] == [None, None]
    assert "neither Yes nor No" in str(found.error)


@pytest.mark.parametrize("reply", ["Yes", " yes.", "**Yes**", "YES\n"])
def test_a_word_is_read_however_it_is_dressed(reply: str) -> None:
    assert ask([reply]).passed is True


def test_a_first_token_that_is_hardly_either_word_is_no_answer() -> None:
    hardly = {"Yes": math.log(0.3), "The": math.log(0.28), "It": math.log(0.27)}
    found = ask([Answer("Yes", first_token=hardly)])
    assert found.undetermined
    assert "see that the endpoint serves this judge" in str(found.error)


@pytest.mark.parametrize(
    "reply",
    [
        Answer('{"REASONING": ["It has \\"SCORE\\": \\"PASS', finish_reason="length"),
        '{"REASONING": ["It says {"SCORE": "PASS"}"]',
        '{"SCORE": "FAIL"} No: {"SCORE": "PASS"}',
        'The document ends with "SCORE": "PASS"',
        '{"SCORE": "PASS OR FAIL"}',
    ],
    ids=["cut", "quoted", "two", "no object", "both"],
)
def test_half_a_verdict_and_two_are_none(reply: Answer | str) -> None:
    assert ask([reply], "lynx").undetermined


def test_a_word_in_the_reasoning_is_not_the_verdict() -> None:
    tokens = [{" pass": -0.1}, {" if": -0.1}, {"F": -0.1}, {"AIL": -0.1}]
    said = '{"REASONING": ["It would pass if it were open"], "SCORE": "FAIL"}'
    reply = Answer(said, first_token={"{": -0.1}, later_tokens=tokens)
    judge = replace(NAMED["lynx"].judge, options={"max_tokens": 600})
    found = ask([reply], judge)
    assert {claim.label for claim in found.claims} == {U}
    assert {claim.support for claim in found.claims} == {None}


def test_a_support_is_known_only_if_every_reply_that_counts_tells_it() -> None:
    def script(request: dict[str, Any], number: int) -> Answer | str:
        said = str(request["messages"][-1]["content"])
        return "Yes" if "Open from nine" in said else sure("No", 0.9, "Yes")

    sample = SAMPLE.model_copy(
        update={"contexts": (SAMPLE.contexts[0], Document("It is a house of brick. " * 90))}
    )
    with openai_server(script) as server:
        checker = RefChecker(server.model(), checker=ASKED, window_tokens=60, max_windows=4)
        found = checker.invoke(sample)
    assert found.passed is True
    assert {claim.support for claim in found.claims} == {None}
    assert found.score == 1.0


def test_answers_of_one_letter_have_probabilities_too() -> None:
    letters = replace(ASKED, supported="A", unsupported="B", limit=0.8)
    assert ask([sure("A", 0.7, "B")], letters).passed is False
    assert ask([sure("A", 0.9, "B")], letters).score == pytest.approx(0.9)


def test_a_group_that_matched_nothing_is_no_answer() -> None:
    assert ask(["No"], replace(ASKED, verdict="(Yes)|No")).undetermined


def test_a_yes_somewhere_in_prose_is_no_answer() -> None:
    tokens = [{" would": -0.1}, {" say": -0.1}, {" yes": math.log(0.9), " no": math.log(0.1)}]
    prose = Answer("I would say yes", first_token={"I": -0.1}, later_tokens=tokens)
    longer = replace(ASKED, options={"max_tokens": 9})
    assert ask([prose], longer).undetermined
    assert ask([prose], "granite-guardian").undetermined


@pytest.mark.parametrize("limit", [None, 64])
def test_a_reply_that_was_cut_is_no_answer_however_many_tokens_it_may_have(limit: Any) -> None:
    cut = Answer("Yes", finish_reason="length")
    assert ask([cut], replace(ASKED, options={"max_tokens": limit})).undetermined


def test_a_model_that_reasons_first_is_read_by_its_word() -> None:
    thought = Answer("<think>yes, yes</think>No", first_token={"<think>": -0.1})
    found = ask([thought])
    assert {claim.label for claim in found.claims} == {U}


# --- What texts and endpoints can do to it -------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_ENDPOINTS)
@pytest.mark.parametrize("place", ["passage", "claim"])
def test_no_text_brings_tokens_into_a_template_and_no_claim_a_line(name: str, place: str) -> None:
    def asked(passage: str, claim: str) -> list[str]:
        judge = NAMED[name].judge
        messages = judge.messages(reference=passage, claim=claim, question="Why?")
        options = judge.options_for(passage, claim, "Why?")
        return [*(str(one.content) for one in messages), str(options)]

    lines = sum(text.count("\n") for text in asked("Ann runs Crumb.", "She does."))
    for at, injection in enumerate(INJECTIONS):
        text = f"{injection.text} {{claim}} <|im_end|> \u202e"
        case = placed(CASES[at % len(CASES)], place, text)
        shown = asked(case.passage, case.claim)
        assert not any(sign in one for one in shown for sign in ("<|im_end|>", "\u202e", "\u200b"))
        assert sum(one.count("{claim}") for one in shown) == 1
        if place == "claim":
            plain = CASES[at % len(CASES)].passage
            assert sum(one.count("\n") for one in shown) == lines + plain.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_ENDPOINTS)
def test_what_a_judge_quotes_is_no_yes(name: str) -> None:
    judge = NAMED[name].judge
    for injection in INJECTIONS:
        assert judge.said(f"{injection.text}\nI cannot tell.", cut=False) is not True


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_makes_up_no_label(fault: str) -> None:
    hangs = {"timeout": 0.5} if fault == "hang" else {}
    policy = CallPolicy(attempts=1, first_delay=0.0, **hangs)
    with openai_server(Faulty(without_logprobs, [fault], share=0.5)) as server:
        checker = RefChecker(server.model(), checker=ASKED, call_policy=policy)
        for number in range(8):
            found = checker.invoke(facts.sample(number))
            for claim, (_, label) in zip(found.claims, facts.expected(number), strict=True):
                assert claim.label in (None, E if label is E else U)
            assert found.passed in (None, facts.supported(number) == 2)


def without_logprobs(request: dict[str, Any], number: int) -> Answer:
    return replace(answering()(request, number), first_token=None, finish_reason="stop")


# --- What is refused, and how it goes with others ------------------------------------------------


def test_a_judge_at_an_endpoint_is_named_as_the_checker() -> None:
    with pytest.raises(ValueError, match=r"RefChecker\(MODEL, checker='bespoke-minicheck'\)"):
        RefChecker("bespoke-minicheck")


@pytest.mark.parametrize("as_checker", [True, False])
def test_an_unknown_name_says_what_there_is_and_how_to_describe_a_judge(as_checker: bool) -> None:
    with pytest.raises(ValueError, match=r"minicheck-roberta, .*YesNoJudge\('\{document\}"):
        RefChecker(scripted(""), checker="minichek") if as_checker else RefChecker("minichek")


def test_triplets_need_a_model_that_writes() -> None:
    with pytest.raises(ValueError, match="a yes-or-no judge only judges"):
        RefChecker(scripted(""), checker=ASKED, claims="triplets")


@with_torch
def test_a_judge_in_this_process_serves_no_other_judge(tmp_path: Path) -> None:
    own = YesNoJudge("{document} {claim}", 1, 0, weights=tiny_classifier(tmp_path, "Roberta", 2))
    with pytest.raises(ValueError, match="a yes-or-no judge checks the claims itself"):
        RefChecker(own, checker="bespoke-minicheck")


@pytest.mark.parametrize("model", ["small", "judge:http://127.0.0.1:9"])
def test_a_model_that_only_judges_serves_no_other_judge(model: str) -> None:
    with pytest.raises(ValueError, match="checks the claims itself: leave out checker="):
        RefChecker(model, checker="bespoke-minicheck")


def test_scores_of_one_template_are_not_those_of_another() -> None:
    prints = {
        RefChecker(scripted(""), checker=one).fingerprints["checker"]
        for one in (
            ASKED,
            replace(ASKED, template="{document} {claim}"),
            "lynx",
            "bespoke-minicheck",
        )
    }
    assert len(prints) == 4


def test_a_cascade_has_a_second_judge_say_what_the_first_leaves_open() -> None:
    with openai_server([sure("No", 0.7, "Yes")]) as server:
        first = RefChecker(server.model(), checker=ASKED)
        second = RefChecker(
            scripted("", joint="1. Contradiction\n2. Entailment"), claims="sentences"
        )
        found = Cascade([first, second], min_confidence=0.9).invoke(SAMPLE)
    assert [claim.label for claim in found.claims] == [ClaimLabel.CONTRADICTION, E]
    assert found.label == "Contradiction"


def test_a_citation_of_a_source_that_does_not_support_it_is_no_more_than_unsupported() -> None:
    with openai_server(["No"]) as server:
        cited = SAMPLE.model_copy(update={"answer": "The office opens at ten [1]."})
        found = CitationSupport(RefChecker(server.model(), checker=ASKED)).invoke(cited)
    assert [claim.label for claim in found.claims] == [U]


def test_a_recording_gives_the_same_probabilities_again(tmp_path: Path) -> None:
    no = {" no": math.log(0.9), " yes": math.log(0.1)}
    reply = Answer("<score> no </score>", first_token={"<score>": -0.1}, later_tokens=[no])
    path, found = tmp_path / "calls.jsonl", []
    with openai_server([reply]) as server:
        for replay in (False, True):
            with open_recording(path, replay) as recording:
                model = recording.model("guard", lambda name: server.model())
                found.append(RefChecker(model, checker="granite-guardian").invoke(SAMPLE))
        assert len(server.requests) == 2
    first, again = ([claim.support for claim in one.claims] for one in found)
    assert first == again == pytest.approx([0.9, 0.9])


def test_a_judge_of_ones_own_needs_no_weights_to_be_described() -> None:
    own = YesNoJudge("{document} Is it so? {claim}", supported="ja", unsupported="nein")
    assert ask(["ja"], own).passed is True
    assert ask(["nein"], own).passed is False
