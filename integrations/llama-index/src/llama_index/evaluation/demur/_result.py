"""What a guarded engine tells beside its answer: how it came about, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.documents import Document

from demur import DemurError, Evaluation, Evidence
from demur.guard import Trace
from llama_index.evaluation.demur._citing import citations_of
from llama_index.evaluation.demur._nodes import KEY, NodeDocument, NodePlace


class GuardResult(dict[str, Any]):
    """What stands in a response's metadata under "demur": values that JSON has.

    `outcome`, `reason`, `limit`, `attempts` (how many); `evaluations` of the last attempt (`name`,
    `finding`, `score`, `label`, `passed`, `cause`); `evidence` of an answer that passed, see
    `evidence_of`, and its `citations` if the engine has `on_pass=Cite()`, see `citations_of`. It
    holds no text of a rejected answer: the trace does, which is no part of the mapping.
    """

    trace: Trace | None = None
    """Every attempt, rejected answers too. `dataclasses.asdict` of a response leaves it out."""

    @classmethod
    def of(cls, trace: Trace) -> GuardResult:
        """Read a trace."""
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
    """The trace of the guarded call that gave a response.

    Args:
        response: Of a `GuardedQueryEngine` or `GuardedChatEngine`. One that streams has its trace
            when it was read to its end.

    Raises:
        DemurError: There is none.
    """
    found = (getattr(response, "metadata", None) or {}).get(KEY)
    if not isinstance(found, GuardResult) or found.trace is None:
        raise DemurError(
            "the response has no trace: expected one of a guarded engine, and of a stream all of "
            "it, read to its end"
        )
    return found.trace


def evidence_of(
    evaluations: Iterable[Evaluation], contexts: Sequence[Document]
) -> list[dict[str, Any]]:
    """The passages that decided about an answer's claims, each with its place in a node.

    Args:
        evaluations: Of the answer.
        contexts: What it was held against.

    Returns:
        For each passage `claim`, `label`, `text`; `node_id` and `ref_doc_id` of the node that holds
        it; `start` and `end`, character offsets in the node's own text; `doc_start` and `doc_end`,
        those in the document that the node was cut from. None where it stands in no node, or in a
        node's metadata, or where LlamaIndex does not know where the node was cut.
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
    # An evaluator that retrieves for itself counts in what it found.
    if (
        not isinstance(document, NodeDocument)
        or document.page_content[span.start : span.end] != evidence.text
    ):
        return {"node_id": None, "ref_doc_id": None, **asdict(NodePlace())}
    node = document.node.node
    place = document.place(span.start, span.end)
    return {"node_id": node.node_id, "ref_doc_id": node.ref_doc_id, **asdict(place)}
