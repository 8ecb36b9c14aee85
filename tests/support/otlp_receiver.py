"""Run a real OTLP receiver, which decodes what OpenTelemetry's exporters send over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

from support.serving import Handler, served

_KINDS = {
    "/v1/logs": (logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse),
    "/v1/metrics": (metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse),
    "/v1/traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse),
}


@dataclass
class OTLPReceiver:
    """Represent a running receiver and the requests that it received."""

    url: str
    requests: dict[str, list[Any]] = field(default_factory=lambda: {path: [] for path in _KINDS})
    """The decoded requests, by path."""

    def logs(self) -> list[Any]:
        """Return every log record."""
        return [
            record
            for request in self.requests["/v1/logs"]
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def spans(self) -> list[Any]:
        """Return every span."""
        return [
            span
            for request in self.requests["/v1/traces"]
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the last request, by name."""
        return {
            metric.name: metric
            for resource in self.requests["/v1/metrics"][-1].resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def attributes_of(thing: Any) -> dict[str, Any]:
    """Return the attributes of a log record or of a metric's data point, as Python values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in thing.attributes}


@contextmanager
def otlp_receiver() -> Iterator[OTLPReceiver]:
    """Receive on a free port of the loopback for the length of the block."""
    receiver = OTLPReceiver("")

    class Receiving(Handler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path not in _KINDS:
                self.send_error(404)
                return
            request, response = _KINDS[self.path]
            receiver.requests[self.path].append(request.FromString(body))
            self.answer(response().SerializeToString(), "application/x-protobuf")

    with served(Receiving) as receiver.url:
        yield receiver
