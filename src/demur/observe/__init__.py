"""Scores out of callbacks: handlers that score in the background, and sinks for what they find.

A handler of another framework makes a `Finished` run of what it is told, with an `About` and a
`Said`, and gives it to a `Recorder`, which has it scored and recorded. What evaluators do meanwhile
(`is_scoring`) is to be left out.
"""

from demur._secret_names import is_secret_name as is_secret_name
from demur.observe.backlog import OnFull
from demur.observe.backlog import is_scoring as is_scoring
from demur.observe.finished import About as About
from demur.observe.finished import Finished as Finished
from demur.observe.finished import plain as plain
from demur.observe.handlers import ScoreCallbackHandler
from demur.observe.reading import Said as Said
from demur.observe.recorder import Recorder as Recorder
from demur.observe.recorder import RunCounts
from demur.observe.records import Record
from demur.observe.redaction import Redact
from demur.observe.redaction import redacted_evaluation as redacted_evaluation
from demur.observe.runs import Tally as Tally
from demur.observe.sinks import JSONLSink, OpenTelemetrySink, Sink, SinkLike, SQLSink
from demur.observe.spans import current_span_ids as current_span_ids

__all__ = [  # what is not named here serves other rooms, and is not promised
    "JSONLSink",
    "OnFull",
    "OpenTelemetrySink",
    "Record",
    "Redact",
    "RunCounts",
    "SQLSink",
    "ScoreCallbackHandler",
    "Sink",
    "SinkLike",
]
