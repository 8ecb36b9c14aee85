"""Test texts that hold for every answer: what they decide, and how they are quoted."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import Cascade, CitationSupport, Cite, Claim, Guard, RefChecker, Regenerate
from demur.guard.edits import FORMS
from support.fakes import ScriptedModel, isolated, saying
from support.guarded import traced

HOURS, BUTTON = "Support answers from 9:15 to 17:30.", "The button below this text books a call."
KNOWN = [HOURS, Document(BUTTON, id="page")]
LOUVRE = "The Louvre opened as a museum in 1793."


def checker(**options: Any) -> RefChecker:
    return RefChecker("small", **{"known": KNOWN, **options})


def quoted(claim: Claim) -> list[tuple[str, str]]:
    return [(one.where, one.text) for one in claim.evidence]


def test_it_supports_and_is_quoted_with_a_place_of_its_own() -> None:
    found = checker().invoke({"answer": f"{LOUVRE} {BUTTON} {HOURS}", "contexts": [LOUVRE]})
    assert found.passed
    assert [quoted(claim) for claim in found.claims] == [
        [("reference 1", LOUVRE)],
        [("known 2", BUTTON)],
        [("known 1", HOURS)],
    ]
    assert [claim.evidence[0].context for claim in found.claims] == [0, None, None]
    for shown in (str(found), found._repr_html_()):
        assert "known 2" in shown


def test_it_contradicts_what_it_is_asked_about() -> None:
    found = checker().invoke(
        {"answer": "Support answers from 9:15 to 21:45.", "contexts": [LOUVRE]}
    )
    assert not found.passed
    assert found.claims[0].missing_strings
    assert not RefChecker("small").invoke({"answer": HOURS, "contexts": [LOUVRE]}).passed


def test_it_is_a_reference_where_there_is_no_other() -> None:
    assert checker().invoke({"answer": HOURS}).passed
    assert checker(known=[" "]).invoke({"answer": HOURS}).cause == "no contexts"


def test_a_retriever_is_asked_all_the_same_and_never_about_it() -> None:
    asked = []

    def search(query: str) -> list[Document]:
        asked.append(query)
        return [Document(LOUVRE, id="louvre")]

    searching = checker(retriever=RunnableLambda(search))
    found = searching.invoke({"question": "When?", "answer": f"{LOUVRE} {HOURS}"})
    assert asked == ["When?"]
    assert found.details["retrieved"] == [{"id": "louvre", "page_content": LOUVRE}]
    assert [quoted(claim) for claim in found.claims] == [
        [("reference 1", LOUVRE)],
        [("known 1", HOURS)],
    ]
    nothing = checker(retriever=RunnableLambda(lambda query: []))
    assert nothing.invoke({"question": "When?", "answer": HOURS}).passed


def test_a_sample_may_have_its_own_behind_those_of_the_evaluator() -> None:
    said = "The assistant speaks Dutch."
    found = checker().invoke({"answer": said, "contexts": [LOUVRE], "known": [said]})
    assert [quoted(claim) for claim in found.claims] == [[("known 3", said)]]


def test_a_worked_out_figure_says_where_its_numbers_stand() -> None:
    known = ["There are 12 rooms on the first floor and 17 rooms on the second floor."]
    found = checker(known=known).invoke(
        {"answer": "In total there are 29 rooms.", "contexts": [" "]}
    )
    (calculation,) = found.claims[0].calculations
    assert {one.where for one in calculation.operands} == {"known 1"}


def test_what_is_styled_is_read_in_plain_letters() -> None:
    styled = "\U0001d412upport answers from 9:15 to 17:30."
    assert checker(known=[styled]).invoke({"answer": HOURS}).passed


def test_the_places_of_the_others_are_those_of_the_sample_in_every_stage_of_a_cascade() -> None:
    model = saying("1. Entailment")
    cascade = Cascade([checker(), RefChecker(model, claims="sentences")], min_confidence=1)
    found = cascade.invoke({"answer": LOUVRE, "contexts": ["Nothing.", LOUVRE]})
    assert [quoted(claim) for claim in found.claims] == [[("reference 2", LOUVRE)]]


def test_what_was_supported_is_not_judged_again_when_documents_are_added() -> None:
    def judge(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Entailment" if "button" in isolated("claim", messages) else "Neutral"

    model = ScriptedModel(script=judge)
    judging = RefChecker(model, claims="sentences", checker="per_claim", known=KNOWN)
    documents = [[Document(LOUVRE)], [Document(LOUVRE), Document("The Louvre is in Paris.")]]
    answers = iter(documents)

    def chain(question: str) -> dict[str, Any]:
        return {"answer": f"{BUTTON} The Louvre is in Paris.", "context": next(answers)}

    found = traced(Guard(chain, judging, on_fail=Regenerate()), "?")
    assert [one.evaluations[0].details["known"] for one in found.trace.attempts[:2]] == [0, 1]


def test_it_does_not_show_that_the_assistant_did_something() -> None:
    messages = [
        {"role": "user", "content": "Send it."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "Found nothing."},
        {"role": "assistant", "content": "I have sent the mail to Dana."},
    ]
    found = checker(known=["I have sent the mail to Dana."]).invoke({"messages": messages})
    assert not found.passed


def test_a_citation_is_not_right_because_something_is_known() -> None:
    sample = {"answer": f"{HOURS[:-1]} [1].", "contexts": [LOUVRE]}
    assert checker().invoke(sample).passed
    found = CitationSupport(checker()).invoke(sample)
    assert (found.passed, found.failure) == (False, "citation")
    right = {"answer": f"{LOUVRE[:-1]} [1].", "contexts": [LOUVRE]}
    assert CitationSupport(checker()).invoke(right).passed


def test_an_evaluator_keeps_it_and_thresholds_do_not_depend_on_it() -> None:
    made = checker()
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.fingerprints == RefChecker("small").fingerprints


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="known"):
        checker(known=[7])


# -- Citations -------------------------------------------------------------------------------------


def _cited(cite: Cite) -> str:
    def chain(question: str) -> dict[str, Any]:
        return {"answer": f"{HOURS} {LOUVRE}", "context": [LOUVRE]}

    return str(Guard(chain, checker(), on_pass=cite).invoke("When?")["answer"])


def test_it_is_cited_only_with_a_mark_of_your_own() -> None:
    assert _cited(Cite()) == f"{HOURS} {LOUVRE[:-1]} [1]."
    assert _cited(Cite(known="[about us]")) == f"{HOURS[:-1]} [about us]. {LOUVRE[:-1]} [1]."


@pytest.mark.parametrize("form", [form for form in FORMS if form != "blocks"])
def test_the_mark_stands_in_the_text_where_other_marks_do(form: Any) -> None:
    in_text = form in ("numbers", "footnotes", "links")
    assert ("[about us]" in _cited(Cite(form, known="[about us]"))) is in_text


def test_a_stream_has_the_mark_too() -> None:
    def chain(question: str) -> Any:
        yield AddableDict(context=[LOUVRE])
        for text in (f"{HOURS} ", LOUVRE):
            yield AddableDict(answer=text)

    guarded = Guard(chain, checker(), on_pass=Cite(known="[ours]"), streaming="sentence")
    assert "".join(chunk.get("answer", "") for chunk in guarded.stream("When?")) == (
        f"{HOURS[:-1]} [ours]. {LOUVRE[:-1]} [1]."
    )


def test_a_mark_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="expected known to be a text"):
        Cite(known=True)  # type: ignore[arg-type]
