"""Sinks: where records go."""

from demur.observe.sinks.base import Sink
from demur.observe.sinks.function import FunctionSink
from demur.observe.sinks.jsonl import JSONLSink
from demur.observe.sinks.otel import OpenTelemetrySink
from demur.observe.sinks.sqlite import SQLiteSink

__all__ = ["FunctionSink", "JSONLSink", "OpenTelemetrySink", "SQLiteSink", "Sink"]
