"""Test that a repair keeps the chain's sources, style and form, and a message's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.utils import AddableDict

from demur import DemurError, Guard, RefChecker, Repair, Retrieve
from support.fakes import ScriptedModel, isolated, saying
from support.guarded import Chain, Heard, judge
from support.streams import ByClaims, Client, Telling, under

OLD = Document("The old tower is 97 metres tall.", metadata={"source": "old.txt"}, id="1")
NEW = Document("The new tower is 84 metres tall.", metadata={"source": "new.txt"}, id="2")
BOTH = [OLD, NEW]


def archive() -> Runnable[str, Any]:
    return RunnableLambda(lambda query: [NEW])


def searched(model: ScriptedModel | None = None) -> Retrieve:
    return Retrieve(archive(), then=Repair(model or saying("good now")))


# --- The output has the sources of the new answer ------------------------------------------------

HELD: dict[str, tuple[Any, Any]] = {
    "documents": ([OLD], BOTH),
    "a tuple of them": ((OLD,), (OLD, NEW)),
    "texts": ([OLD.page_content], [OLD.page_content, NEW.page_content]),
    "a text": (OLD.page_content, f"{OLD.page_content}\n\n{NEW.page_content}"),
}


@pytest.mark.parametrize("key", ["context", "source_documents"])
@pytest.mark.parametrize(("held", "left"), HELD.values(), ids=HELD)
def test_what_was_found_stands_where_the_output_has_its_sources(
    key: str, held: Any, left: Any
) -> None:
    chain = Chain({"answer": "bad", key: held})
    assert Guard(chain, judge, on_fail=searched()).invoke("why?") == {
        "answer": "good now",
        key: left,
    }
    named = Guard(Chain({"answer": "bad", "found": held}), judge, on_fail=searched())
    named = named.model_copy(update={"contexts": "found"})
    assert named.invoke("why?")["found"] == left


def test_in_a_stream_the_sources_are_sent_anew() -> None:
    chain = Telling([AddableDict(context=[OLD]), *under("answer", "One is bad.")])
    guard: Any = Guard(chain, ByClaims(), streaming="sentence", on_fail=searched())
    client = Client().read(guard, "why?")
    assert client.text == "good now"
    assert client.others == {"context": BOTH}
    assert client.replaced[-1]["keys"] == ["context"]


# --- The prompt of a repair -----------------------------------------------------------------------


def asked(chain: Any, model: ScriptedModel, given: Any = "why?", **repair: Any) -> str:
    """Run a guard, and return the prompt of its repair."""
    policy = Retrieve(archive(), then=Repair(model, **repair))
    Guard(chain, judge, on_fail=policy).invoke(given)
    (messages,) = model.requests
    return "\n".join(str(message.content) for message in messages)


def test_it_is_shown_the_chains_own_instructions_without_the_documents_among_them() -> None:
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer like a pirate.\n{context}\nNever say <why>."),
            ("human", "{question}"),
        ]
    )
    chain: Any = RunnablePassthrough.assign(context=lambda _: NEW.page_content)
    model = saying("good now")
    shown = asked(chain | prompt | saying("bad"), model, {"question": "why?"})
    style = isolated("style", model.requests[0])
    assert "Answer like a pirate." in style
    assert NEW.page_content not in style
    assert "<why>" not in style  # The prompt cannot forge a delimiter.
    assert "to nothing else in it" in shown


def test_a_chain_that_gives_its_model_no_instructions_has_none() -> None:
    model = saying("good now")
    shown = asked(ChatPromptTemplate.from_template("{q}") | saying("bad"), model, {"q": "why?"})
    assert "<style-" not in shown
    assert "The style tells" not in shown


@pytest.mark.parametrize(
    ("said", "mark"),
    [("It is bad [2].", "[1]"), ("Bad [^3].", "[^1]"), ("Bad【1】.", "【1】"), ("Bad (2).", "(1)")],
)
def test_it_is_to_cite_as_the_answer_did(said: str, mark: str) -> None:
    model = saying("good now")
    shown = asked(Chain({"answer": said, "context": [OLD]}), model)
    assert f"as in {mark}." in shown
    documents = isolated("documents", model.requests[0])
    assert documents == f"1. {OLD.page_content}\n\n2. {NEW.page_content}"


@pytest.mark.parametrize("said", ["It is bad.", "Bad (in 1911).", "A list [a, b] is bad."])
def test_an_answer_without_citations_gets_none(said: str) -> None:
    assert "cite" not in asked(Chain(said), saying("good now"))


PROMPTS: dict[str, Any] = {
    "a text": lambda feedback, documents: f"Mend {feedback.question}: {len(documents)}",
    "messages": lambda feedback, documents: [
        SystemMessage("Mend."),
        HumanMessage(f"Mend {feedback.question}: {len(documents)}"),
    ],
    "a prompt": lambda feedback, documents: ChatPromptTemplate.from_template(
        "Mend {question}: {count}"
    ).invoke({"question": feedback.question, "count": len(documents)}),
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_its_prompt_can_be_replaced(prompt: Any) -> None:
    model = saying("good now")
    policy = Retrieve(archive(), then=Repair(model, prompt=prompt))
    guard = Guard(Chain({"answer": "bad", "context": [OLD]}), judge, on_fail=policy)
    assert guard.invoke("why?")["answer"] == "good now"
    (messages,) = model.requests
    assert messages[-1].content == "Mend why?: 2"


def test_what_is_no_prompt_is_an_error_and_nothing_leaves() -> None:
    for made in (3, [], "", [3]):
        policy = Repair(saying("good now"), prompt=lambda feedback, documents, made=made: made)
        with pytest.raises(DemurError, match="expected a prompt"):
            Guard(Chain("bad"), judge, on_fail=policy).invoke("why?")
    wrong: Any = "Mend it."
    with pytest.raises(TypeError, match="Repair: expected prompt to be a function"):
        Repair(saying("good now"), prompt=wrong)


# --- Metadata and events of a repaired answer ---------------------------------------------------


def tower() -> ScriptedModel:
    """Return a model that checks claims against the reference by their numbers, and repairs."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "repair":
            return "The new tower is 84 metres tall."
        number = "97" if "97" in isolated("claims", messages) else "84"
        known = number in isolated("reference", messages)
        return f"1. {'Entailment' if known else 'Neutral'}"

    return ScriptedModel(script=script)


CLAIM = {
    "text": "The new tower is 84 metres tall.",
    "label": "Entailment",
    "start": 0,
    "end": 32,
    "path": None,
}
EVIDENCE = {
    "claim": "The new tower is 84 metres tall.",
    "label": "Entailment",
    "text": NEW.page_content,
    "context": 0,
    "start": 0,
    "end": 32,
    "id": "2",
    "source": "new.txt",
}


def checked(output: Any, **options: Any) -> Guard[Any, Any]:
    checker = RefChecker(tower(), checker="joint", claims="sentences")
    return Guard(Chain(output), checker, contexts=lambda _: [NEW], **options)


def test_a_recovered_message_says_so_with_its_evidence() -> None:
    wrong = AIMessage("The new tower is 97 metres tall.", id="7")
    mended = checked(wrong, model=tower()).invoke("How tall?")
    assert (mended.text, mended.id) == ("The new tower is 84 metres tall.", "7")
    assert mended.response_metadata["demur"] == {
        "outcome": "recovered",
        "reason": "attempt 2 passed",
        "evidence": [EVIDENCE],
    }
    under_a_key = checked({"answer": wrong, "n": None}, model=tower()).invoke("How tall?")
    assert under_a_key["answer"].response_metadata["demur"]["outcome"] == "recovered"


def test_the_event_has_claims_and_evidence_of_a_delivered_answer() -> None:
    for said, options in (
        ("The new tower is 84 metres tall.", {}),
        ("The new tower is 97 metres tall.", {"model": tower()}),
    ):
        heard = Heard()
        checked(said, **options).with_config(callbacks=[heard]).invoke("How tall?")
        (told,) = heard.of("demur.outcome")
        assert (told["claims"], told["evidence"]) == ([CLAIM], [EVIDENCE])


@pytest.mark.parametrize("policy", ["abstain", "annotate", "block"])
def test_it_has_none_of_an_answer_that_is_not_delivered(policy: str) -> None:
    heard = Heard()
    guard = checked("The new tower is 97 metres tall.", on_fail=policy)
    try:
        guard.with_config(callbacks=[heard]).invoke("How tall?")
    except DemurError:
        assert policy == "block"
    (told,) = heard.of("demur.outcome")
    assert (told["claims"], told["evidence"]) == ([], [])
    assert "97" not in repr(heard.events)


def test_a_quote_that_stands_in_none_of_the_documents_has_no_place() -> None:
    found: Any = RunnableLambda(lambda query: [NEW])
    checker = RefChecker(tower(), checker="joint", claims="sentences", retriever=found)
    heard = Heard()
    guard = Guard(Chain("The new tower is 84 metres tall."), checker)
    guard.with_config(callbacks=[heard]).invoke("How tall?")
    (told,) = heard.of("demur.outcome")
    (quote,) = told["evidence"]
    assert (quote["text"], quote["context"], quote["source"]) == (NEW.page_content, None, None)
