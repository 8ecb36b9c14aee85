"""Describe how a guarded engine came to its answer, and the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.documents import Document
from llama_index.core.agent.workflow import AgentOutput

from demur import DemurError, Evaluation, Evidence
from demur.guard import Trace
from llama_index.evaluation.demur._citing import citations_of
from llama_index.evaluation.demur._nodes import KEY, NodeDocument, NodePlace


class GuardResult(dict[str, Any]):
    """Hold the result of a guarded call, in a response's metadata under "demur", as values of JSON.

    The keys are `outcome`, `reason`, `limit` and `attempts` (their number); `evaluations` of the
    last attempt (`name`, `finding`, `score`, `label`, `passed`, `cause`); `evidence` of an answer
    that passed, as `evidence_of` returns it; and its `citations`, as `citations_of` returns them,
    if the engine has `on_pass=Cite()`.

    The mapping holds no text of a rejected answer. The trace does, and is not part of the mapping.
    """

    trace: Trace | None = None
    """Every attempt, rejected answers too. `dataclasses.asdict` of a response leaves it out."""

    @classmethod
    def of(cls, trace: Trace) -> GuardResult:
        """Return the result that a trace describes."""
        last = trace.attempts[-1]
        passed = last.verdict == "passed"
        told = ("name", "finding", "score", "label", "passed", "cause")
        result = cls(
            outcome=trace.outcome,
            reason=trace.reason,
            limit=trace.limit,
            attempts=len(trace.attempts),
            evaluations=[
                {name: getattr(evaluation, name) for name in told}
                for evaluation in last.evaluations
            ],
            evidence=evidence_of(last.evaluations, last.contexts) if passed else [],
            citations=citations_of(trace),
        )
        result.trace = trace
        return result


def trace_of(response: Any) -> Trace:
    """Return the trace of the guarded call that gave a response.

    Args:
        response: A response of a `GuardedQueryEngine` or `GuardedChatEngine`, or the output of a
            `GuardedAgent`. A stream has its trace after it was read to its end.

    Raises:
        DemurError: The response has no trace.
    """
    found = (getattr(response, "metadata", None) or {}).get(KEY)
    if isinstance(response, AgentOutput):
        found = response.get(KEY)
    if not isinstance(found, GuardResult) or found.trace is None:
        raise DemurError(
            "the response has no trace: expected a response of a guarded engine; a stream has its "
            "trace once it was read to its end"
        )
    return found.trace


def evidence_of(
    evaluations: Iterable[Evaluation], contexts: Sequence[Document]
) -> list[dict[str, Any]]:
    """Return the passages that decided about an answer's claims, each with its place in a node.

    Args:
        evaluations: The evaluations of the answer.
        contexts: The documents that the answer was judged against.

    Returns:
        For each passage: `claim`, `label` and `text`; `node_id` and `ref_doc_id` of the node that
        holds it; `start` and `end`, its character offsets in the node's own text; `doc_start` and
        `doc_end`, its offsets in the document that the node was cut from. If the passage is in no
        node, these are all None. If it is in a node's metadata, the offsets are None. If LlamaIndex
        does not know where the node was cut, `doc_start` and `doc_end` are None.
    """
    return [
        {"claim": claim.text, "label": str(evidence.label), "text": evidence.text}
        | _place(contexts, evidence)
        for evaluation in evaluations
        for claim in evaluation.claims
        for evidence in claim.evidence
    ]


def _place(contexts: Sequence[Document], evidence: Evidence) -> dict[str, Any]:
    at, span = evidence.context, evidence.span
    document = contexts[at] if at is not None and at < len(contexts) else None
    # An evaluator with its own retriever counts in that retriever's documents, not in `contexts`.
    if (
        not isinstance(document, NodeDocument)
        or document.page_content[span.start : span.end] != evidence.text
    ):
        return {"node_id": None, "ref_doc_id": None, **asdict(NodePlace())}
    node = document.node.node
    place = document.place(span.start, span.end)
    return {"node_id": node.node_id, "ref_doc_id": node.ref_doc_id, **asdict(place)}
