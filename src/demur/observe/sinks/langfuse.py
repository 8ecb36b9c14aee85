"""Put scores on traces in Langfuse."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from demur.errors import needs
from demur.observe.places import SinkError
from demur.observe.records import Record, TraceLink
from demur.observe.sinks.traces import TraceScore, TraceSink
from demur.observe.spans import ids_of

if TYPE_CHECKING:
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler


class LangfuseSink(TraceSink):
    """Put scores in Langfuse, on the observation that its `CallbackHandler` made of the run.

    Without that handler, they go on the current observation. A score is numeric, or categorical
    with the finding as its value if the evaluator found no number.

    Args:
        client: The client. None: `langfuse.get_client()`, which the environment may set up.
        handler: Langfuse's handler. None: it is found when a run inside the run begins, which is
            never the case for a chain of one step.

    Raises:
        MissingExtraError: langfuse is not installed.
    """

    system = "langfuse"
    advice = "attach langfuse.langchain.CallbackHandler, or give it to LangfuseSink(handler=...)"

    def __init__(
        self, client: Langfuse | None = None, handler: CallbackHandler | None = None
    ) -> None:
        with needs("langfuse", "langfuse", "LangfuseSink"):
            import langfuse
        self._langfuse, self._client, self._handler = langfuse, client, handler

    def locate(self, run_id: UUID, beside: Sequence[Any] | None) -> TraceLink | None:
        """Return the handler's observation of a run, or else the current one."""
        from opentelemetry.trace import get_current_span

        module = sys.modules.get("langfuse.langchain")  # without it there is no handler
        handlers = (self._handler, *(beside or ()))
        heard = [one for one in handlers if module and isinstance(one, module.CallbackHandler)]
        # A handler has no public way to a run's observation.
        found = [run for one in heard if (run := getattr(one, "_runs", {}).get(run_id))]
        span: Any = found[0]._otel_span if found else get_current_span()
        # A span that is not sampled has no scope. Other spans may not be in Langfuse.
        if getattr(getattr(span, "instrumentation_scope", None), "name", None) != "langfuse-sdk":
            return None
        trace_id, span_id = ids_of(span.get_span_context())
        return TraceLink(system=self.system, trace_id=trace_id, span_id=span_id)

    def send(self, link: TraceLink, scores: Sequence[TraceScore], record: Record) -> None:
        """Send all scores in one request."""
        from langfuse.api import CreateScoreRequest, ScoreDataType

        client = self._made()
        where: Any = {"trace_id": link.trace_id, "observation_id": link.span_id}
        where |= {"environment": getattr(client, "_environment", None)}
        request = [
            CreateScoreRequest(
                **{**where, "id": one.id, "name": one.name, "comment": one.comment},
                timestamp=record.time,  # a score with the same id and time is replaced
                value=one.label if one.value is None else one.value,
                data_type=ScoreDataType("CATEGORICAL" if one.value is None else "NUMERIC"),
                metadata={**one.metadata, "finding": one.label},
            )
            for one in scores
        ]
        taken = client.api.scores.create(request=request, request_options={"max_retries": 0})
        if rejected := getattr(taken, "rejected", 0):
            raise SinkError(f"Langfuse rejected {rejected} of {len(request)} scores of a record")

    def page(self, link: TraceLink) -> str | None:
        """Return the address of the trace's page."""
        return self._made().get_trace_url(trace_id=link.trace_id)

    def _made(self) -> Langfuse:
        self._client = self._client or self._langfuse.get_client()
        return self._client
