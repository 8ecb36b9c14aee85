"""Keep or send records: to files, databases, OpenTelemetry or functions."""

from demur.observe.sinks.base import Sink, Writer
from demur.observe.sinks.choosing import SinkLike, as_sinks
from demur.observe.sinks.jsonl import JSONLSink
from demur.observe.sinks.otel import OpenTelemetrySink
from demur.observe.sinks.sql import SQLSink

__all__ = [
    "JSONLSink",
    "OpenTelemetrySink",
    "SQLSink",
    "Sink",
    "SinkLike",
    "Writer",
    "as_sinks",
]
