"""Test cited answers, whose marks are the numbers of the response's source nodes."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from pydantic import BaseModel

from demur import (
    Cite,
    Claim,
    ClaimLabel,
    Evaluation,
    Evidence,
    Regenerate,
    Retrieve,
    Sample,
    Span,
    Strip,
)
from demur.guard import REFUSAL
from fake_llm import ScriptedLLM
from guarded_app import (
    MODES,
    Heard,
    Said,
    ask,
    assert_cited,
    build,
    finds,
    query_engine,
    read,
    sentence_judge,
    speaker,
)
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._result import trace_of
from llama_index.evaluation.demur.events import DecisionEvent
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from support.rag import FACTS, QUESTION, RIGHT, WRONG

OPENED = "It was opened in 1911."
TWO = f"{RIGHT} {OPENED}"
FORMS: list[Any] = ["numbers", "footnotes", "links", "list"]


def nodes_of(*texts: str, **options: Any) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=text, id_=f"n{at}", **copy.deepcopy(options)), score=0.5)
        for at, text in enumerate(texts)
    ]


def says(*answers: str, nodes: Sequence[NodeWithScore] = (), **options: Any) -> Said:
    coming = list(answers)

    def script(_: str) -> Response:
        said = coming.pop(0) if len(coming) > 1 else coming[0]
        return Response(said, [*nodes], **options)

    return Said(script=script)


def cited(engine: BaseQueryEngine, *evaluators: Any, form: Any = "numbers", **options: Any) -> Any:
    return GuardedQueryEngine(
        engine, *(evaluators or (sentence_judge(),)), on_pass=Cite(form), **options
    )


# --- Forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_form_in_a_response(form: Any) -> None:
    held = nodes_of(FACTS[0], metadata={"url": "https://x.example/a b", "title": "Guide"})
    response = ask("sync", cited(says(RIGHT, nodes=held), form=form))
    address = "https://x.example/a"  # One with a space does not count.
    text = {
        "numbers": "The Amber Tower is 84 metres tall [1].",
        "footnotes": f"The Amber Tower is 84 metres tall [^1].\n\n[^1]: Guide: “{FACTS[0]}”",
        "links": "The Amber Tower is 84 metres tall [1].",
        "list": RIGHT,
    }
    assert response.response == text[form]
    held = nodes_of(FACTS[0], metadata={"url": address, "title": "Guide"})
    linked = ask("sync", cited(says(RIGHT, nodes=held), form="links"))
    assert linked.response == f"The Amber Tower is 84 metres tall [[1]]({address})."
    (one,) = response.metadata["demur"]["citations"]
    assert (one["number"], one["title"], one["url"]) == (1, "Guide", None)
    assert (one["quote"], one["node_id"]) == (FACTS[0], "n0")
    assert response.response[one["start"] : one["end"]].startswith("The Amber Tower is 84")
    assert_cited(response)


def test_content_blocks_are_refused_with_what_to_use() -> None:
    with pytest.raises(ValueError, match=r"blocks'\) is for LangChain's .*'numbers'.*'list'"):
        cited(query_engine(RIGHT), form="blocks")
    with pytest.raises(TypeError, match=r"on_pass: expected Cite\(...\)"):
        GuardedQueryEngine(query_engine(RIGHT), sentence_judge(), on_pass="numbers")  # type: ignore[arg-type]  # what is refused


def test_without_it_nothing_is_marked_and_what_does_not_pass_cites_nothing() -> None:
    plain: Any = GuardedQueryEngine(query_engine(RIGHT), sentence_judge()).query(QUESTION)
    refused: Any = cited(query_engine(WRONG), on_fail="abstain").query(QUESTION)
    assert (plain.response, refused.response) == (RIGHT, REFUSAL)
    for response in (plain, refused):
        assert response.metadata["demur"]["citations"] == []
        assert not any("demur" in node.metadata for node in response.source_nodes)


# --- Numbers and spans ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_mark_is_the_number_of_a_source_node(mode: str) -> None:
    engine = query_engine(TWO)
    plain = [node.node.node_id for node in engine.query(QUESTION).source_nodes]
    response = ask(mode, cited(engine))
    assert response.response == (
        "The Amber Tower is 84 metres tall [1]. It was opened in 1911 [2]."
    )
    assert [node.node.node_id for node in response.source_nodes] == plain
    assert response.source_nodes[0].node.get_content() == FACTS[0]
    assert_cited(response)
    found = response.metadata["demur"]["citations"]
    assert [(one["number"], response.response[one["start"] : one["end"]]) for one in found] == [
        (1, "The Amber Tower is 84 metres tall [1]."),
        (2, "It was opened in 1911 [2]."),
    ]
    assert found[0]["ref_doc_id"] == "fact-0"
    assert FACTS[0][found[0]["doc_start"] : found[0]["doc_end"]] == found[0]["quote"]


def test_a_node_that_is_cited_is_a_copy_that_shows_a_model_what_it_did() -> None:
    held = nodes_of(FACTS[0], metadata={"page": 1}, excluded_llm_metadata_keys=["secret"])
    before = copy.deepcopy(held)
    response = ask("sync", cited(says(RIGHT, nodes=held)))
    assert held == before
    (node,) = response.source_nodes
    assert node.node is not held[0].node
    assert (node.node.node_id, node.score, node.metadata["page"]) == ("n0", 0.5, 1)
    for shown in (MetadataMode.LLM, MetadataMode.EMBED):
        assert node.get_content(shown) == held[0].get_content(shown)
    assert node.node.excluded_llm_metadata_keys == ["secret", "demur"]


def test_of_nodes_with_the_same_text_one_has_the_number() -> None:
    """Use each text once in the guard; the nodes with the same text come after the cited ones."""
    held = nodes_of(FACTS[1], FACTS[1], FACTS[0])
    engine = says(WRONG, RIGHT, nodes=held)

    def tell(query: Any, feedback: Any) -> Any:
        return query

    search = Retrieve(finds(FACTS[3]), then=Regenerate(tell))
    response = ask("sync", cited(engine, on_fail=search))
    assert response.metadata["demur"]["outcome"] == "recovered"
    assert response.response == "The Amber Tower is 84 metres tall [2]."
    assert [node.node.node_id for node in response.source_nodes] == ["n0", "n2", "n1"]
    assert_cited(response)


_words = st.sampled_from(["The tower is 84 m.", "[1]", "[x](javascript:alert(1))", "A", "\n", " "])
_texts = st.lists(_words, min_size=1, max_size=4).map("".join)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_whatever_nodes_say_numbers_fit_and_quotes_are_copied(data: st.DataObject) -> None:
    texts = data.draw(st.lists(_texts, min_size=1, max_size=4))
    metadata = data.draw(st.dictionaries(st.sampled_from(["title", "url"]), _texts, max_size=2))
    form = data.draw(st.sampled_from(FORMS))

    def supports(sample: Sample) -> Evaluation:
        claims = []
        for start, end in ((0, 6), (7, 14)):
            at = data.draw(st.integers(0, len(sample.contexts) - 1))
            whole = sample.contexts[at].page_content
            first = data.draw(st.integers(0, len(whole) - 1))
            last = data.draw(st.integers(first + 1, len(whole)))
            place = {"context": at, "span": Span(start=first, end=last), "text": whole[first:last]}
            evidence = (Evidence(**place, label=ClaimLabel.ENTAILMENT),)
            claims.append(
                Claim(
                    text="c",
                    label=ClaimLabel.ENTAILMENT,
                    evidence=evidence,
                    span=Span(start=start, end=end),
                )
            )
        return Evaluation(name="Supports", score=1.0, passed=True, claims=tuple(claims))

    engine = says("One is. Two are.", nodes=nodes_of(*texts, metadata=metadata))
    response = cited(engine, supports, form=form).query(QUESTION)
    contexts = as_documents(response.source_nodes)
    for one in response.metadata["demur"]["citations"]:
        node = response.source_nodes[one["number"] - 1]
        assert one["node_id"] == node.node.node_id
        assert one["quote"] in contexts[one["number"] - 1].page_content
        if one["node_start"] is not None:
            assert node.node.get_content()[one["node_start"] : one["node_end"]] == one["quote"]
    sentences = response.response.split("\n\n")[0]
    known = {one["number"] for one in response.metadata["demur"]["citations"]}
    assert {int(number) for number in re.findall(r"\[\^?(\d)\]", sentences)} <= known
    assert not re.search(r"(?<!\\)\]\(javascript", response.response)


# --- What documents and models write -------------------------------------------------------------


def test_an_engine_that_numbers_its_own_sources() -> None:
    llm = speaker("The Amber Tower is 84 metres tall [2].")
    engine = CitationQueryEngine.from_args(build(llm), llm=llm, similarity_top_k=2)
    response = ask("sync", cited(engine))
    assert response.response == "The Amber Tower is 84 metres tall [1]."
    assert response.source_nodes[0].text.startswith("Source 1:")
    assert_cited(response)


# --- Other answers -------------------------------------------------------------------------------


def reword(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "The tower was opened in 1911."


def test_failing_sentences_are_taken_out() -> None:
    engine = query_engine(f"{RIGHT} It has 999 rooms.")
    plain = [node.node.node_id for node in engine.query(QUESTION).source_nodes]
    with Heard() as heard:
        response = ask("sync", cited(engine, on_fail=Strip()))
    assert response.response == "The Amber Tower is 84 metres tall [1]."
    assert response.metadata["demur"]["outcome"] == "trimmed"
    assert [one.origin for one in trace_of(response).attempts] == ["chain", "edit"]
    assert [node.node.node_id for node in response.source_nodes] == plain
    assert_cited(response)
    assert [one.action for one in heard.of(DecisionEvent)] == ["strip"]
    assert "999 rooms" not in json.dumps(response.metadata)


def test_an_llm_of_llama_index_rewords_what_is_left() -> None:
    said = f"{RIGHT} The house beside it has 999 rooms. It was opened in 1911."
    llm = ScriptedLLM(script=reword)
    engine = query_engine(said)
    response = ask("sync", GuardedQueryEngine(engine, sentence_judge(), on_fail=Strip(llm)))
    assert response.response == f"{RIGHT} The tower was opened in 1911."
    assert response.metadata["demur"]["outcome"] == "trimmed"
    assert len(llm.requests) == 1
    with pytest.raises(TypeError, match="expected a LlamaIndex LLM"):
        GuardedQueryEngine(engine, sentence_judge(), on_fail=Strip(7))


class Tower(BaseModel):
    metres: int
    rooms: int | None = None


def test_a_structured_answer_stays_as_it_is() -> None:
    engine = Said(script=lambda _: PydanticResponse(Tower(metres=84), nodes_of(FACTS[0])))
    response = ask("async", cited(engine))
    assert isinstance(response, PydanticResponse)
    assert response.response == Tower(metres=84)
    assert response.metadata is not None
    (one,) = response.metadata["demur"]["citations"]
    assert (one["path"], one["number"]) == ("$.metres", 1)
    assert_cited(response)


def test_a_value_of_a_structured_answer_is_taken_out() -> None:
    given = PydanticResponse(Tower(metres=84, rooms=999), nodes_of(FACTS[0]))
    response = ask("sync", cited(Said(script=lambda _: given), on_fail=Strip()))
    assert isinstance(response, PydanticResponse)
    assert response.response == Tower(metres=84)
    assert response.metadata is not None
    assert response.metadata["demur"]["outcome"] == "trimmed"


# --- Streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "streaming", "form"),
    [
        ("sync", "buffer", "numbers"),
        ("async", "sentence", "footnotes"),
        ("sync", "sentence", "links"),
    ],
)
def test_a_stream_comes_to_what_a_query_gives(mode: str, streaming: Any, form: Any) -> None:
    plain: Any = cited(query_engine(TWO), form=form).query(QUESTION)
    engine = query_engine(TWO, streaming=True)
    pieces, response = read(mode, cited(engine, form=form, streaming=streaming))
    assert "".join(pieces) == response.response == plain.response
    assert response.metadata["demur"]["outcome"] == "passed"
    same = ("number", "start", "end", "quote", "node_start", "doc_start")
    assert [[one[key] for key in same] for one in response.metadata["demur"]["citations"]] == [
        [one[key] for key in same] for one in plain.metadata["demur"]["citations"]
    ]
    assert_cited(response)


WAYS = pytest.mark.parametrize(("mode", "streaming"), [("sync", "sentence"), ("async", "buffer")])


@WAYS
def test_a_stream_without_the_sentences_that_fail(mode: str, streaming: Any) -> None:
    said = f"{RIGHT} The house beside it has 999 rooms. The tower was opened in 1911."
    engine = query_engine(said, streaming=True)
    pieces, response = read(mode, cited(engine, streaming=streaming, on_fail=Strip()))
    marked = "The Amber Tower is 84 metres tall [1]. The tower was opened in 1911 [2]."
    assert response.response == marked
    assert "rooms" not in "".join(pieces)
    assert response.metadata["demur"]["outcome"] == "trimmed"
    assert_cited(response)


# --- Guards in engines ---------------------------------------------------------------------------


def test_documents_that_are_no_nodes_are_cited_too() -> None:
    """Cite what a LangChain retriever finds, for example, by making a node of each document."""
    from langchain_core.runnables import RunnableLambda

    found = RunnableLambda(lambda _: [Document(FACTS[0], id="d", metadata={"title": "Guide"})])
    engine = says(WRONG, RIGHT, nodes=nodes_of(FACTS[3]))
    search = Retrieve(found, then=Regenerate(lambda query, feedback: query))
    response = cited(engine, on_fail=search).query(QUESTION)
    assert response.response == "The Amber Tower is 84 metres tall [2]."
    assert response.source_nodes[1].metadata["title"] == "Guide"
    assert_cited(response)


# --- What is serialised --------------------------------------------------------------------------


def test_a_response_with_citations_can_be_copied_pickled_and_written_down() -> None:
    response: Any = cited(query_engine(TWO)).query(QUESTION)
    result = response.metadata["demur"]
    assert json.loads(json.dumps(result)) == dict(result)
    for again in (copy.deepcopy(response), pickle.loads(pickle.dumps(response))):
        assert again.response == response.response
        assert again.metadata == response.metadata
        assert [n.metadata for n in again.source_nodes] == [
            n.metadata for n in response.source_nodes
        ]
        assert trace_of(again).citations == trace_of(response).citations
    assert dataclasses.asdict(response)["metadata"] == response.metadata
    for node in response.source_nodes:
        assert TextNode.from_json(node.node.to_json()).metadata == node.metadata
