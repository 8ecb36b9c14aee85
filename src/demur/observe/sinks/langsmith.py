"""Put scores on runs in LangSmith, as feedback."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from demur.errors import needs
from demur.observe.records import Record, TraceLink
from demur.observe.sinks.traces import TraceScore, TraceSink

if TYPE_CHECKING:
    from langsmith import Client


class LangSmithSink(TraceSink):
    """Put scores in LangSmith, as a feedback for each evaluator on the run that was scored.

    The `LangChainTracer` of the run names the project; where none becomes known, as in a chain of
    one step, the environment does. Scores do not extend how long LangSmith keeps a trace.

    Args:
        client: The client. None: the one of LangChain's tracer, which the environment sets up.

    Raises:
        MissingExtraError: langsmith is not installed.
    """

    system = "langsmith"
    advice = "set LANGSMITH_TRACING=true, or attach a LangChainTracer"

    def __init__(self, client: Client | None = None) -> None:
        with needs("langsmith", "langsmith", "LangSmithSink"):
            from langsmith.run_trees import get_cached_client
        self._client = client or get_cached_client()
        self._projects: dict[str | None, Any] = {None: None}

    def locate(self, run_id: UUID, beside: Sequence[Any] | None) -> TraceLink | None:
        """Return the run of the tracer that hears it. LangSmith's id of a run is LangChain's."""
        from langchain_core.tracers import LangChainTracer
        from langsmith.utils import get_tracer_project

        link = partial(TraceLink, system=self.system, span_id=str(run_id))
        for tracer in beside or ():
            if isinstance(tracer, LangChainTracer) and (run := tracer.run_map.get(str(run_id))):
                return link(trace_id=str(run.trace_id), project=run.session_name)
        # At the end of a run whose handlers did not become known, there may be a tracer.
        return link(trace_id=str(run_id), project=get_tracer_project()) if beside == () else None

    def send(self, link: TraceLink, scores: Sequence[TraceScore], record: Record) -> None:
        """Create a feedback for each score; LangSmith takes one in a request."""
        from langsmith.utils import LangSmithConflictError, LangSmithNotFoundError

        project = self._project(link)
        for one in scores:
            told: Any = {"score": one.value, "value": one.label, "comment": one.comment}
            about: Any = {"feedback_source_type": "model", "source_info": one.metadata}
            about |= {"session_id": project and project.id, "error": one.error is not None}
            about |= {"extend_trace_retention": False}  # it would raise the price of the trace
            # With a `trace_id`, the client would not wait for the server.
            create = partial(self._client.create_feedback, link.span_id, one.name, **told, **about)
            try:
                create(feedback_id=one.id, stop_after_attempt=1)
            except LangSmithNotFoundError:  # the run is on its way; the waits are 1 and 2 seconds
                self._client.flush(timeout=5)
                create(feedback_id=one.id, stop_after_attempt=3)
            except LangSmithConflictError:
                self._client.update_feedback(one.id, **told)

    def page(self, link: TraceLink) -> str | None:
        """Return the address of the run's page."""
        project = self._project(link)
        return project and f"{project.url}/r/{link.span_id}"

    def _project(self, link: TraceLink) -> Any:
        if link.project not in self._projects:
            self._client.flush(timeout=5)  # the first run of a project makes it
            self._projects[link.project] = self._client.read_project(project_name=link.project)
        return self._projects[link.project]
