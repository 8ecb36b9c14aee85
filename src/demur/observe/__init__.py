"""Score answers in the background of a chain, and write the records to sinks.

A handler for another framework makes a `Finished` run of that framework's events, with an `About`
and a `Said`. It gives the run to a `Recorder`, which has it scored and recorded. The handler must
ignore events while `is_scoring()` returns True: they come from the evaluators.
"""

from demur._secrets import is_secret_name as is_secret_name
from demur.observe.backlog import OnFull
from demur.observe.backlog import is_scoring as is_scoring
from demur.observe.finished import About as About
from demur.observe.finished import Finished as Finished
from demur.observe.finished import plain as plain
from demur.observe.handlers import ScoreCallbackHandler
from demur.observe.recorder import Recorder as Recorder
from demur.observe.recorder import RunCounts
from demur.observe.records import Record, TraceLink
from demur.observe.redaction import Redact
from demur.observe.redaction import redacted_evaluation as redacted_evaluation
from demur.observe.redaction import redactor as redactor
from demur.observe.runs import Tally as Tally
from demur.observe.sinks import (
    JSONLSink,
    LangfuseSink,
    LangSmithSink,
    MLflowSink,
    OpenTelemetrySink,
    PhoenixSink,
    Sink,
    SinkLike,
    SQLSink,
)
from demur.observe.sinks import Writer as Writer
from demur.observe.sinks import as_sinks as as_sinks
from demur.observe.spans import current_span_ids as current_span_ids
from demur.observe.texts import Said as Said

__all__ = [  # the other names serve other rooms, and are not public
    "JSONLSink",
    "LangSmithSink",
    "LangfuseSink",
    "MLflowSink",
    "OnFull",
    "OpenTelemetrySink",
    "PhoenixSink",
    "Record",
    "Redact",
    "RunCounts",
    "SQLSink",
    "ScoreCallbackHandler",
    "Sink",
    "SinkLike",
    "TraceLink",
]
