"""Test the citations in answers that pass."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from demur import (
    Annotate,
    Budget,
    CitationSupport,
    Cite,
    DemurError,
    Guard,
    Regenerate,
    Strip,
)
from demur.guard import OUTCOME, REFUSAL
from demur.guard.edits import FORMS
from support.guarded import Chain, Heard, traced
from support.held import LOUVRE, HeldByNumbers

ANSWER = "It opened in 1793. It has 35000 works."
CITED = "It opened in 1793 [1]. It has 35000 works [2]."


def _documents(output: Any) -> list[Document]:
    return list(LOUVRE)


def _guard(*outputs: Any, cite: Cite | None = None, **options: Any) -> Guard[Any, Any]:
    options = {"contexts": _documents, "on_pass": cite or Cite(), **options}
    return Guard(RunnableLambda(Chain(*outputs)), HeldByNumbers(), **options)


def _in_a_mapping(answer: Any) -> dict[str, Any]:
    return {"answer": answer, "context": list(LOUVRE)}


# --- The places of marks and citations -----------------------------------------------------------


def test_a_string_has_the_marks() -> None:
    assert _guard(ANSWER).invoke("When?") == CITED


def test_a_mapping_has_them_under_a_key_of_their_own() -> None:
    output = _in_a_mapping(ANSWER)
    found = _guard(output, contexts=None).invoke("When?")
    assert found["answer"] == CITED
    assert [one["quote"] for one in found["citations"]] == [d.page_content for d in LOUVRE]
    assert "citations" not in output


def test_citations_that_the_chain_has_put_beside_the_answer_do_not_leave() -> None:
    output = {**_in_a_mapping(ANSWER), "citations": ["nobody has checked this"]}
    found = _guard(output, contexts=None).invoke("When?")
    assert [one["number"] for one in found["citations"]] == [1, 2]


def test_the_trace_and_the_outcome_tell_the_same() -> None:
    heard = Heard()
    guarded = _guard(AIMessage(ANSWER))
    found = guarded.with_trace().invoke("When?", {"callbacks": [heard]})
    citations = [one.model_dump() for one in found.trace.citations]
    (told,) = heard.of(OUTCOME)
    assert citations == told["citations"] == found.output.response_metadata["demur"]["citations"]
    assert found.output.text == CITED
    assert [one["id"] for one in citations] == ["louvre-1", None]
    assert [CITED[one["start"] : one["end"]] for one in citations] == [
        "It opened in 1793 [1].",
        "It has 35000 works [2].",
    ]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "blocks"])
def test_without_marks_the_text_is_the_chains(form: Any) -> None:
    found = traced(_guard(ANSWER, cite=Cite(form)))
    assert found.trace.attempts[0].answer == ANSWER
    assert (found.output == ANSWER) is (form == "list")
    assert len(found.trace.citations) == 2


@pytest.mark.parametrize("output", [ANSWER, _in_a_mapping(ANSWER)])
def test_blocks_take_a_message(output: Any) -> None:
    with pytest.raises(DemurError, match="only a message holds content blocks"):
        _guard(output, cite=Cite("blocks")).invoke("When?")


class Facts(BaseModel):
    year: int
    works: int


@pytest.mark.parametrize(
    "output",
    [
        Facts(year=1793, works=35000),
        {"year": 1793, "works": 35000},
        '{"year": 1793, "works": 35000}',
    ],
)
def test_of_data_nothing_changes_and_citations_name_the_values(output: Any) -> None:
    found = traced(_guard(output))
    assert found.output == output
    assert [(one.path, one.number) for one in found.trace.citations] == [
        ("$.year", 1),
        ("$.works", 2),
    ]


def test_a_message_that_calls_tools_keeps_its_text_and_its_calls() -> None:
    call = {"name": "count", "args": {"works": 35000}, "id": "1", "type": "tool_call"}
    found = traced(_guard(AIMessage("It opened in 1793 [7].", tool_calls=[call])))
    assert found.output.content == "It opened in 1793 [7]."
    assert found.output.tool_calls == [call]
    assert [one["number"] for one in found.output.response_metadata["demur"]["citations"]] == [1, 2]


@pytest.mark.parametrize(
    "output", ["Well: It opened in 1793.", {"said": ["", "It opened in 1793."]}]
)
def test_an_output_in_which_a_function_finds_the_answer_stays_as_it_is(output: Any) -> None:
    def answer(given: Any) -> str:
        return given.partition(": ")[2] if isinstance(given, str) else given["said"][1]

    found = traced(_guard(output, answer=answer))
    assert found.output == output
    (citation,) = found.trace.citations
    assert answer(output)[citation.start : citation.end] == "It opened in 1793."


# --- The answers that get citations -------------------------------------------------------------


def test_an_answer_that_a_recovery_brought_has_them() -> None:
    found = traced(_guard("It opened in 1850.", ANSWER, on_fail=Regenerate()))
    assert (found.output, found.trace.outcome) == (CITED, "recovered")


@pytest.mark.parametrize(
    ("answer", "options", "left"),
    [
        ("It opened in 1850.", {"on_fail": "abstain"}, REFUSAL),
        ("It opened in 1793. In 1850 it burnt.", {"on_fail": Annotate("(?)")}, None),
        ("I do not know.", {}, "I do not know."),
        ("It was unsure in 1793.", {"on_error": "open"}, "It was unsure in 1793."),
    ],
)
def test_what_did_not_pass_has_none(answer: str, options: Any, left: str | None) -> None:
    found = traced(_guard(answer, **options))
    assert found.trace.citations == ()
    assert found.output == (left or f"{answer}\n\n(?)")


# --- The chain's own citations -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("It opened in 1793 [2]. It has 35000 works [2].", CITED),
        ("It opened in 1793 [9]. It has 35000 works.", CITED),
        (
            "It opened in 1793.\n\nSource: works.txt",
            "It opened in 1793 [1].",
        ),
    ],
)
def test_one_that_does_not_support_its_sentence_is_corrected(answer: str, left: str) -> None:
    chain = RunnableLambda(Chain(answer))
    judges = HeldByNumbers(), CitationSupport(HeldByNumbers())
    guarded = Guard(chain, *judges, on_fail={"citation": Cite()}, contexts=_documents)
    found = traced(guarded)
    assert (found.output, found.trace.outcome) == (left, "recovered")
    first, second = found.trace.attempts
    assert first.evaluations[1].failures == ("citation",)
    assert (second.origin, second.recovery) == ("edit", "cite")


def test_by_default_it_is_corrected_at_no_cost() -> None:
    chain = Chain("It opened in 1793 [2].", "never asked for")
    judges = HeldByNumbers(), CitationSupport(HeldByNumbers())
    found = traced(Guard(RunnableLambda(chain), *judges, contexts=_documents))
    assert found.output == "It opened in 1793 [1]."
    assert len(chain.inputs) == 1


def test_one_that_cannot_be_confirmed_is_taken_out() -> None:
    """Check a sentence that the documents support only together."""
    answer = "It has 35000 works since 1793 [2]."
    together = Document("Since 1793 there are 35000 works.")
    chain = RunnableLambda(Chain(answer))
    guarded = Guard(
        chain,
        HeldByNumbers(),
        CitationSupport(_Never()),
        on_fail={"citation": Cite()},
        contexts=lambda output: [LOUVRE[0], together],
        budget=Budget(attempts=4),
    )
    found = traced(guarded)
    assert (found.output, found.trace.outcome) == ("It has 35000 works since 1793.", "recovered")


class _Never(HeldByNumbers):
    """Support no sentence."""

    def _steps(self, sample: Any) -> Any:
        return (yield from super()._steps(sample.model_copy(update={"contexts": ()})))


def test_what_a_wrong_answer_cites_is_not_corrected_but_answered_again() -> None:
    chain = Chain("It opened in 1850 [2].", "It opened in 1793 [1].")
    judges = HeldByNumbers(), CitationSupport(HeldByNumbers())
    on_fail = {"citation": Cite(), "any": Regenerate()}
    found = traced(Guard(RunnableLambda(chain), *judges, on_fail=on_fail, contexts=_documents))
    assert (found.output, len(chain.inputs)) == ("It opened in 1793 [1].", 2)
    assert [attempt.recovery for attempt in found.trace.attempts] == [None, "regenerate"]


def test_a_citation_is_corrected_once_what_else_fails_is_taken_out() -> None:
    answer = "The Louvre opened in 1793 [2]. In 1850 it burnt down [1]."
    judges = HeldByNumbers(), CitationSupport(HeldByNumbers())
    policy = {"citation": Cite(), "contradiction": Strip()}
    found = traced(
        Guard(RunnableLambda(Chain(answer)), *judges, on_fail=policy, contexts=_documents)
    )
    assert (found.output, found.trace.outcome) == ("The Louvre opened in 1793 [1].", "trimmed")
    assert [attempt.recovery for attempt in found.trace.attempts] == [None, "strip", "cite"]
