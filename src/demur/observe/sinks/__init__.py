"""Keep or send records: to files, databases, OpenTelemetry, systems for traces or functions."""

from demur.observe.sinks.base import Sink, Writer
from demur.observe.sinks.choosing import SinkLike, as_sinks
from demur.observe.sinks.jsonl import JSONLSink
from demur.observe.sinks.langfuse import LangfuseSink
from demur.observe.sinks.langsmith import LangSmithSink
from demur.observe.sinks.mlflow import MLflowSink
from demur.observe.sinks.otel import OpenTelemetrySink
from demur.observe.sinks.phoenix import PhoenixSink
from demur.observe.sinks.sql import SQLSink

__all__ = [
    "JSONLSink",
    "LangSmithSink",
    "LangfuseSink",
    "MLflowSink",
    "OpenTelemetrySink",
    "PhoenixSink",
    "SQLSink",
    "Sink",
    "SinkLike",
    "Writer",
    "as_sinks",
]
