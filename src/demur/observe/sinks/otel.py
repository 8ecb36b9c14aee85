"""Send scores through OpenTelemetry, as events and metrics beside the spans of their runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from demur.errors import DemurError, needs
from demur.observe.records import Record
from demur.observe.sinks.base import Sink
from demur.schema import Evaluation

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider, LogRecord
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider

_log = logging.getLogger("demur.observe")

EVENT = "gen_ai.evaluation.result"
"""The name of the event for an evaluation, from OpenTelemetry's semantic conventions."""

# Written out here, since the Python constants of the conventions are deprecated.
_EVALUATOR = "gen_ai.evaluation.name"
_SCORE = "gen_ai.evaluation.score.value"
_LABEL = "gen_ai.evaluation.score.label"
_EXPLANATION = "gen_ai.evaluation.explanation"
_RESPONSE = "gen_ai.response.id"
_MODEL = "gen_ai.response.model"
_TOKEN_TYPE = "gen_ai.token.type"
_ERROR = "error.type"
_FINDING = "demur.finding"
_VERDICT = "demur.verdict"
_OUTCOME = "demur.outcome"
_ATTEMPT = "demur.attempt"
_RUN = "demur.run.id"
_ROOT = "demur.run.root_id"
_RUN_NAME = "demur.run.name"

# Most scores are in [0, 1]; FEWL's scores may be higher.
_SCORES = (*(tenth / 10 for tenth in range(11)), 2.0)
_FLUSH_MILLISECONDS = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class OpenTelemetrySink(Sink):
    """Send every evaluation as an OpenTelemetry event, and count evaluations in metrics.

    The event is a log record named `gen_ai.evaluation.result`. Its time is the end of the run, and
    its span is the run's span if the record has one. Its attributes are:

    - those of the semantic conventions: name, score, label (the finding, if the evaluator has no
      labels), explanation (or the reason why it is undetermined), id and model of the response, and
      `error.type`;
    - `demur.run.id`, `demur.run.root_id` and `demur.run.name`;
    - `demur.attempt` (counted from 1) and `demur.verdict` of the attempt;
    - `demur.finding`, and `demur.outcome` of a guard's call.

    Unknown attributes are left out. Only events of the last attempt have the id of the response.

    The attributes of the metrics hold no ids and no texts:

    | name | unit | by |
    |---|---|---|
    | `demur.runs` | {run} | verdict, outcome, model |
    | `demur.evaluations` | {evaluation} | evaluator, finding, model |
    | `demur.evaluation.score` | 1 | evaluator; a histogram takes no scores below 0 |
    | `demur.judge.tokens` | {token} | evaluator, `gen_ai.token.type`: input or output |

    The SDK holds events and metrics for some seconds before it exports them. It drops what the
    collector does not accept, and `kill -9` loses what it holds. `flush` makes it export at once.
    If no record may be lost, add a sink that writes to a file. A record that comes again is sent
    and counted again.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        *,
        logger_provider: LoggerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Choose the providers.

        Args:
            logger_provider: The provider that gets the events. None: the global provider at the
                time of the first record.
            meter_provider: The provider that gets the metrics. None: the same rule.
        """
        with needs("opentelemetry", "otel", "OpenTelemetrySink"):
            # The logs API has no public name yet, so only this file imports it.
            import opentelemetry._logs
            import opentelemetry.metrics  # noqa: F401  # checks that it is installed
        self._logger_provider = logger_provider
        self._meter_provider = meter_provider
        self._emitter: _Emitter | None = None

    def __repr__(self) -> str:
        return "OpenTelemetrySink()"

    def write(self, record: Record) -> None:
        """Give the evaluations of a record to the SDK.

        Raises:
            Exception: A provider raised it.
        """
        if self._emitter is None:
            providers = self._providers()
            if not any(hasattr(provider, "force_flush") for provider in providers):
                _log.warning(
                    "OpenTelemetrySink: no OpenTelemetry SDK is set up in this process, so scores "
                    "go nowhere until it is: call set_logger_provider and set_meter_provider, or "
                    "give the sink its providers"
                )
            self._emitter = _Emitter(*providers)
        self._emitter.emit(record)

    def flush(self) -> None:
        """Make the SDK export what it holds; wait up to ten seconds each for events and metrics.

        Raises:
            DemurError: The SDK did not export everything in that time.
            Exception: A reader of metrics failed.
        """
        for provider in self._providers():
            # The providers of the API alone, which do nothing, have no such method.
            force_flush = getattr(provider, "force_flush", None)
            if force_flush and force_flush(timeout_millis=_FLUSH_MILLISECONDS) is False:
                raise DemurError(
                    f"{type(provider).__name__} did not export everything within "
                    f"{_FLUSH_MILLISECONDS // 1000} seconds: check that the collector answers"
                )

    def close(self) -> None:
        """Flush the providers. They stay open, since they belong to the caller."""
        self.flush()

    def _providers(self) -> tuple[LoggerProvider, MeterProvider]:
        from opentelemetry._logs import get_logger_provider
        from opentelemetry.metrics import get_meter_provider

        return (
            self._logger_provider or get_logger_provider(),
            self._meter_provider or get_meter_provider(),
        )


class _Emitter:
    """Hold the logger and the instruments of the metrics."""

    def __init__(self, logs: LoggerProvider, metrics: MeterProvider) -> None:
        try:
            of_demur = version("demur")
        except PackageNotFoundError:  # demur is not installed, but run from a folder
            of_demur = ""
        self._logger = logs.get_logger("demur", of_demur)
        meter = metrics.get_meter("demur", of_demur)
        self._evaluations = meter.create_counter(
            "demur.evaluations", "{evaluation}", "Evaluations, by what they found."
        )
        self._scores = meter.create_histogram(
            "demur.evaluation.score",
            "1",
            "Scores; higher is better.",
            explicit_bucket_boundaries_advisory=_SCORES,
        )
        self._tokens = meter.create_counter(
            "demur.judge.tokens", "{token}", "Tokens that judging took."
        )
        self._runs = meter.create_counter("demur.runs", "{run}", "Runs, by verdict.")

    def emit(self, record: Record) -> None:
        """Send the events of a record, and count the record."""
        context = _context(record)
        # All events are made before the first is sent: if one cannot be made, none is sent.
        for event in list(_events(record, context)):
            self._logger.emit(event)
        for _, evaluation in record.judged():
            self._count(evaluation, record.model, context)
        run = {_VERDICT: record.verdict, _OUTCOME: record.outcome, _MODEL: record.model}
        self._runs.add(1, _known(run), context)

    def _count(self, evaluation: Evaluation, model: str | None, context: Context) -> None:
        by = {_EVALUATOR: evaluation.name}
        counted = _known({**by, _FINDING: evaluation.finding, _MODEL: model})
        self._evaluations.add(1, counted, context)
        if evaluation.score is not None and evaluation.score >= 0:
            self._scores.record(evaluation.score, by, context)
        usage = evaluation.usage
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens:
                self._tokens.add(tokens, {**by, _TOKEN_TYPE: kind}, context)


def _events(record: Record, context: Context) -> Iterator[LogRecord]:
    from opentelemetry._logs import LogRecord

    time = (record.time - _EPOCH) // timedelta(microseconds=1) * 1000
    last = len(record.attempts)
    for attempt, evaluation in record.judged():
        finding = evaluation.finding
        attributes = {
            _EVALUATOR: evaluation.name,
            _SCORE: evaluation.score,
            _LABEL: evaluation.label or finding,
            _EXPLANATION: evaluation.explanation or evaluation.error or None,
            _RESPONSE: record.response if attempt == last else None,
            _MODEL: record.model,
            _ERROR: finding if evaluation.undetermined else None,
            _FINDING: finding,
            _VERDICT: record.attempts[attempt - 1].verdict,
            _OUTCOME: record.outcome,
            _ATTEMPT: attempt,
            _RUN: record.id,
            _ROOT: record.root,
            _RUN_NAME: record.name,
        }
        yield LogRecord(
            timestamp=time, context=context, event_name=EVENT, attributes=_known(attributes)
        )


def _context(record: Record) -> Context:
    """Return a context with the record's span; without one, the context has no span at all."""
    from opentelemetry import trace
    from opentelemetry.context import Context

    span: trace.Span = trace.INVALID_SPAN
    if record.trace_id and record.span_id:
        # Not remote: the run was in this process. Sampled, so that a scored run is kept.
        of_run = trace.SpanContext(
            trace_id=int(record.trace_id, 16),
            span_id=int(record.span_id, 16),
            is_remote=False,
            trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
        )
        span = trace.NonRecordingSpan(of_run)
    return trace.set_span_in_context(span, Context())


def _known(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
