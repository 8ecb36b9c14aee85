from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timezone
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from demur import Claim, ClaimLabel, DemurError, Evaluation, Evidence, Span, Usage
from demur.guard import Attempt, Trace
from llama_index.evaluation.demur._nodes import as_documents
from llama_index.evaluation.demur._result import GuardResult, evidence_of, trace_of

TEXT = "The tower is 84 metres tall."


def _claim(*found: Evidence) -> Evaluation:
    claim = Claim(text="It is 84 m.", label=ClaimLabel.ENTAILMENT, evidence=found)
    return Evaluation(name="RefChecker", score=1.0, passed=True, claims=(claim,))


def _at(start: int, end: int, text: str, context: int | None = 0) -> Evidence:
    span = Span(start=start, end=end)
    return Evidence(context=context, span=span, text=text, label=ClaimLabel.ENTAILMENT)


def _attempt(*found: Evidence, contexts: Any = (), verdict: Any = "passed") -> Attempt:
    return Attempt(
        origin="chain",
        question="How tall?",
        answer="84 metres",
        contexts=tuple(contexts),
        evaluations=(_claim(*found),),
        verdict=verdict,
        usage=Usage(),
    )


def _evidence(attempt: Attempt) -> list[dict[str, Any]]:
    return evidence_of(attempt.evaluations, attempt.contexts)


def _trace(*attempts: Attempt) -> Trace:
    return Trace(
        outcome="passed",
        reason="attempt 1 passed",
        attempts=attempts,
        usage=Usage(),
        time=datetime(2026, 11, 22, tzinfo=timezone.utc),
        seconds=1.0,
    )


def _nodes(**options: Any) -> Any:
    node = TextNode(text=TEXT, id_="n1", metadata={"title": "84 towers"}, **options)
    return as_documents([NodeWithScore(node=node)])


def test_evidence_in_a_nodes_text() -> None:
    (document,) = _nodes(start_char_idx=100)
    at = document.page_content.index(TEXT)
    (found,) = _evidence(_attempt(_at(at, at + len(TEXT), TEXT), contexts=[document]))
    assert found == {
        "claim": "It is 84 m.",
        "label": "Entailment",
        "text": TEXT,
        "node_id": "n1",
        "ref_doc_id": None,
        "start": 0,
        "end": len(TEXT),
        "doc_start": 100,
        "doc_end": 100 + len(TEXT),
    }


def test_evidence_whose_place_is_unknown_has_none() -> None:
    (uncut,) = _nodes()
    # A window around a sentence holds another text than was cut.
    (window,) = _nodes(start_char_idx=100, end_char_idx=100 + len(TEXT))
    window.node.node.set_content(f"It is old. {TEXT}")
    (window,) = as_documents([window.node])
    (known,) = _nodes(start_char_idx=0)
    for document, quote, start in (
        (uncut, "84 metres", TEXT.index("84 metres")),
        (window, TEXT, 11),
        (known, "84 towers", None),  # This is in the metadata.
    ):
        at = document.page_content.index(quote)
        (found,) = _evidence(_attempt(_at(at, at + len(quote), quote), contexts=[document]))
        assert (found["node_id"], found["start"]) == ("n1", start)
        assert found["end"] == (None if start is None else start + len(quote))
        assert found["doc_start"] is found["doc_end"] is None


def test_evidence_in_no_node() -> None:
    plain = Document(TEXT)
    places = [
        (_at(0, len(TEXT), TEXT), [plain]),  # A LangChain retriever found this document.
        (_at(0, 3, "84!", context=None), [plain]),  # This is the sample's reference.
        (_at(0, 3, "84!", context=5), [plain]),
        (_at(0, 9, "something", context=0), _nodes()),  # The evaluator retrieved this text itself.
    ]
    for evidence, contexts in places:
        (found,) = _evidence(_attempt(evidence, contexts=contexts))
        assert found["text"] == evidence.text
        assert found["node_id"] is found["start"] is None


def test_the_result_is_json_and_tells_no_rejected_text() -> None:
    (document,) = _nodes()
    at = document.page_content.index(TEXT)
    rejected = _attempt(_at(at, at + 3, "The"), contexts=[document], verdict="failed")
    result = GuardResult.of(_trace(rejected))
    assert json.loads(json.dumps(result)) == dict(result)
    assert result["evidence"] == result["citations"] == []
    assert "84 metres" not in json.dumps(result)
    told = {"name": "RefChecker", "finding": "passed", "score": 1.0, "label": None, "passed": True}
    assert result["evaluations"] == [{**told, "cause": None}]


def test_the_trace_of_a_response() -> None:
    trace = _trace(_attempt())
    response = Response("84 metres", metadata={"demur": GuardResult.of(trace)})
    assert trace_of(response) is trace
    written = dataclasses.asdict(response)
    for none in (Response("x", metadata=written["metadata"]), Response("x"), "x"):
        with pytest.raises(DemurError, match="has no trace"):
            trace_of(none)
