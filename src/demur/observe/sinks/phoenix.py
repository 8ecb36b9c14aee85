"""Put scores on Phoenix's spans, as annotations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import tenacity

from demur.errors import needs
from demur.observe.records import Record, TraceLink
from demur.observe.sinks.traces import TraceScore, TraceSink, without_password
from demur.observe.spans import ids_of

if TYPE_CHECKING:
    from phoenix.client import Client


class PhoenixSink(TraceSink):
    """Put scores in Arize Phoenix, as an annotation for each evaluator on the run's span.

    An annotation replaces that of an earlier record with the same id. OpenTelemetry may hold a span
    for five seconds, so the sink waits up to eight for a span that the server does not know.

    Args:
        client: The client. None: `phoenix.client.Client()`, which the environment sets up.

    Raises:
        MissingExtraError: arize-phoenix-client is not installed.
    """

    system = "phoenix"
    advice = "call LangChainInstrumentor().instrument() before the chain runs"

    def __init__(self, client: Client | None = None) -> None:
        with needs("arize-phoenix-client", "phoenix", "PhoenixSink"):
            from phoenix.client import Client
        self._client = client or Client()

    def locate(self, run_id: UUID, beside: Sequence[Any] | None) -> TraceLink | None:
        """Return the span that OpenInference made of the run, if the span is sampled."""
        module = sys.modules.get("openinference.instrumentation.langchain")
        making = module and module.LangChainInstrumentor()
        span = making and making.is_instrumented_by_opentelemetry and making.get_span(run_id)
        ids = span and span.get_span_context()
        if not ids or not ids.trace_flags.sampled:
            return None
        trace_id, span_id = ids_of(ids)
        return TraceLink(system=self.system, trace_id=trace_id, span_id=span_id)

    def send(self, link: TraceLink, scores: Sequence[TraceScore], record: Record) -> None:
        """Annotate the span in one request, and wait until Phoenix has taken the annotations."""
        notes = [
            {
                **{"span_id": link.span_id, "name": one.name, "identifier": one.id},
                "annotator_kind": "LLM" if one.asked else "CODE",
                "result": {"score": one.value, "label": one.label, "explanation": one.comment},
                "metadata": one.metadata,
            }
            for one in scores
        ]
        unknown = tenacity.retry_if_exception(lambda error: "404 Not Found" in str(error))
        end, pause = tenacity.stop_after_delay(8), tenacity.wait_exponential(0.1, max=1)
        retrying = tenacity.Retrying(retry=unknown, stop=end, wait=pause, reraise=True)
        retrying(self._client.spans.log_span_annotations, span_annotations=notes, sync=True)

    def page(self, link: TraceLink) -> str:
        """Return the address that leads to the span's page, without a password."""
        server = without_password(str(self._client._client.base_url))
        return f"{server}/redirects/spans/{link.span_id}"
