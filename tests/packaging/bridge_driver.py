"""Score chains that Phoenix or MLflow traces, and print in JSON what the server then has.

Usage: python bridge_driver.py SYSTEM DEAD, where DEAD is an address at which no server answers. The
system's own client finds the server in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate

from demur import Evaluation, Sample, ScoreCallbackHandler, Usage
from demur.observe import MLflowSink, PhoenixSink, Record, Sink
from demur.observe.log import open_log, records

LOG, FALLBACK = "scores.sqlite", "fallback.jsonl"
QUESTION = {"question": "Since when is the Louvre a museum?"}


def half(sample: Sample) -> Evaluation:
    usage, reason = Usage(calls=1), "One claim of two holds."
    return Evaluation(name="half", score=0.5, passed=False, explanation=reason, usage=usage)


def unsure(sample: Sample) -> Evaluation:
    return Evaluation(name="unsure", error="The judge did not answer.")


def run(handler: ScoreCallbackHandler) -> None:
    """Run a chain, an asynchronous chain, and a model that has the handler itself."""
    model = FakeListChatModel(responses=["Since 1851."])
    chain = ChatPromptTemplate.from_template("{question}") | model
    chain.invoke(QUESTION, config={"callbacks": [handler], "run_name": "chain"})
    asyncio.run(chain.ainvoke(QUESTION, config={"callbacks": [handler], "run_name": "async"}))
    model = FakeListChatModel(responses=["Since 1851."], callbacks=[handler])
    model.invoke("Since when?", config={"run_name": "model"})


def logged(path: str) -> list[Record]:
    with open_log(path) as log:
        return [record for record in records(log) if isinstance(record, Record)]


def main(new: Callable[[], Sink], away: Callable[[], Sink], read: Callable[[Any], Any]) -> None:
    """Print what a server has of the runs that a handler scored.

    Args:
        new: Makes a sink.
        away: Makes a sink whose server does not answer.
        read: Returns what the server has on a trace.
    """
    system = sys.argv[1]
    handler = ScoreCallbackHandler(half, unsure, sink=[system, LOG])
    run(handler)
    counts = (handler.flush(60), handler.counts.recorded, handler.counts.to_fallback)
    found = {record.name: record for record in logged(LOG)}
    first = {name: read(record.traces[0]) for name, record in found.items()}
    for record in found.values():
        new().write(record)  # type: ignore[union-attr]
    again = {name: read(record.traces[0]) for name, record in found.items()}
    handler = ScoreCallbackHandler(half, sink=away(), fallback=FALLBACK)
    run(handler)
    away_counts = (handler.close(60), handler.counts.to_fallback)
    told = {
        "counts": counts,
        "links": {name: record.traces[0].model_dump() for name, record in found.items()},
        "first": first,
        "again": again,
        "away": away_counts,
        "fallback": sorted(str(record.name) for record in logged(FALLBACK)),
    }
    sys.stdout.write(json.dumps(told))


def of_phoenix() -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from phoenix.client import Client
    from phoenix.otel import register

    endpoint = f"{os.environ['PHOENIX_COLLECTOR_ENDPOINT']}/v1/traces"
    register(endpoint=endpoint, project_name="demo", batch=True, verbose=False)
    LangChainInstrumentor().instrument()
    spans = Client().spans

    def read(link: Any) -> dict[str, Any]:
        several = spans.get_spans(project_identifier="demo", trace_ids=[link.trace_id])
        (span,) = (one for one in several if one["context"]["span_id"] == link.span_id)
        notes = spans.get_span_annotations(span_ids=[link.span_id], project_identifier="demo")
        return {
            "span": span["name"],
            "scores": {
                note["name"]: [
                    note["result"]["score"],
                    note["result"]["label"],
                    note["result"]["explanation"],
                    note["annotator_kind"],
                ]
                for note in notes
            },
            "number": len(notes),
        }

    main(PhoenixSink, lambda: PhoenixSink(Client(base_url=sys.argv[2])), read)


def of_mlflow() -> None:
    import mlflow

    mlflow.set_experiment("demo")
    mlflow.langchain.autolog()

    def read(link: Any) -> dict[str, Any]:
        trace = mlflow.get_trace(link.trace_id)
        (span,) = (one for one in trace.data.spans if one.span_id == link.span_id)
        notes = trace.info.assessments
        assert {note.span_id for note in notes} == {link.span_id}
        return {
            "span": span.name,
            "experiment": trace.info.experiment_id,
            "scores": {
                note.name: [
                    note.feedback.value,
                    note.metadata["finding"],
                    note.rationale,
                    note.source.source_type,
                    note.error and note.error.error_message,
                ]
                for note in notes
            },
            "number": len(notes),
        }

    class Away(MLflowSink):
        def send(self, *given: Any) -> None:
            # The tracer goes on with the server that it knows.
            here = mlflow.get_tracking_uri()
            mlflow.set_tracking_uri(sys.argv[2])
            try:
                super().send(*given)
            finally:
                mlflow.set_tracking_uri(here)

    main(MLflowSink, Away, read)


{"phoenix": of_phoenix, "mlflow": of_mlflow}[sys.argv[1]]()
