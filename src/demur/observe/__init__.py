"""Scores out of callbacks: handlers that score in the background, and sinks for what they find."""

from demur.observe.handlers import AsyncScoreCallbackHandler, ScoreCallbackHandler
from demur.observe.recorder import Counts
from demur.observe.records import Record
from demur.observe.sinks import JSONLSink, OpenTelemetrySink, Sink, SQLiteSink

__all__ = [
    "AsyncScoreCallbackHandler",
    "Counts",
    "JSONLSink",
    "OpenTelemetrySink",
    "Record",
    "SQLiteSink",
    "ScoreCallbackHandler",
    "Sink",
]
