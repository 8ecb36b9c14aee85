"""Put scores on MLflow's traces, as feedback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from demur.errors import needs
from demur.observe.records import Record, TraceLink
from demur.observe.sinks.traces import TraceScore, TraceSink, without_password


class MLflowSink(TraceSink):
    """Put scores in MLflow, as a feedback for each evaluator on the trace and the span of the run.

    The value is the score, or the finding if there is none; an undetermined evaluation has an error
    instead. A feedback replaces that of an earlier record with the same id.

    Raises:
        MissingExtraError: Neither mlflow nor mlflow-tracing is installed.
    """

    system = "mlflow"
    advice = "call mlflow.langchain.autolog(), or run the chain in mlflow.start_span()"

    def __init__(self) -> None:
        with needs("mlflow-tracing", "mlflow", "MLflowSink"):
            import mlflow.tracing
        self._mlflow = mlflow

    def locate(self, run_id: UUID, beside: Sequence[Any] | None) -> TraceLink | None:
        """Return the span of the tracer that hears the run, or else the active span."""
        # In asyncio, MLflow's tracer runs in other threads, and no span is active in this one.
        heard = [getattr(one, "_run_span_mapping", {}).get(str(run_id)) for one in beside or ()]
        span = next((own.span for own in heard if own), self._mlflow.get_current_active_span())
        traces = self._mlflow.tracing.trace_manager.InMemoryTraceManager.get_instance()
        with traces.get_trace(span and span.trace_id) as trace:
            if trace is None:  # not sampled, or a span of another library
                return None
            ids = {"trace_id": span.trace_id, "span_id": span.span_id}
            return TraceLink(system=self.system, project=trace.info.experiment_id, **ids)

    def send(self, link: TraceLink, scores: Sequence[TraceScore], record: Record) -> None:
        """Log a feedback for each score, and wait until MLflow has taken it."""
        from mlflow.utils.rest_utils import http_request

        entities, store = self._mlflow.entities, self._mlflow.tracing.client.TracingClient().store
        if self.page(link):  # ask once, since without an answer the client tries for four minutes
            http_request(store.get_host_creds(), "/health", "GET", max_retries=0, timeout=5)
        try:
            trace = store.get_trace_info(link.trace_id)
        except self._mlflow.MlflowException:  # MLflow holds traces for five seconds
            self._mlflow.flush_trace_async_logging()
            trace = store.get_trace_info(link.trace_id)
        known = {(a.metadata or {}).get("demur.id"): a.assessment_id for a in trace.assessments}
        for one in scores:
            about = {**one.metadata, "finding": one.label, "demur.id": one.id}
            about = {name: str(entry) for name, entry in about.items()}  # MLflow takes texts only
            error = entities.AssessmentError(one.label, one.error) if one.error else None
            value = None if error else one.label if one.value is None else one.value
            source = entities.AssessmentSource("LLM_JUDGE" if one.asked else "CODE", one.name)
            more = {"rationale": one.comment, "metadata": about, "span_id": link.span_id}
            feedback = entities.Feedback(one.name, value, error, source, **more)
            if one.id in known:
                self._mlflow.update_assessment(link.trace_id, known[one.id], feedback)
            else:
                self._mlflow.log_assessment(link.trace_id, feedback)

    def page(self, link: TraceLink) -> str | None:
        """Return the page's address without a password; None if MLflow writes to no server."""
        server = without_password(self._mlflow.get_tracking_uri())
        page = f"{server}/#/experiments/{link.project}/traces?selectedEvaluationId={link.trace_id}"
        return page if server.startswith("http") else None
