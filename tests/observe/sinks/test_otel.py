"""Test OpenTelemetrySink with the real SDK, its OTLP exporters and a receiver."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from demur import Evaluation, Sample, ScoreCallbackHandler
from demur.errors import MissingExtraError
from demur.observe import OpenTelemetrySink, Record
from demur.observe.spans import current_span_ids
from support import records
from support.otlp_receiver import OTLPReceiver, attributes_of, otlp_receiver
from support.spawned import Spawned


@dataclass
class Pipeline:
    """Connect the SDK's exporters to a receiver."""

    receiver: OTLPReceiver
    logs: LoggerProvider
    metrics: MeterProvider
    tracer: trace.Tracer

    def sink(self) -> OpenTelemetrySink:
        return OpenTelemetrySink(logger_provider=self.logs, meter_provider=self.metrics)

    def sent(self, *written: Record) -> list[Any]:
        """Write these records, and return the events that arrive."""
        sink = self.sink()
        for record in written:
            sink.write(record)
        sink.flush()
        return self.receiver.logs()

    def points(self, name: str) -> dict[frozenset[tuple[str, Any]], Any]:
        """Return the points of a metric by their attributes."""
        metric = self.receiver.metrics()[name]
        data = getattr(metric, metric.WhichOneof("data"))
        return {frozenset(attributes_of(one).items()): one for one in data.data_points}

    def counted(self, name: str) -> dict[frozenset[tuple[str, Any]], int]:
        return {by: point.as_int for by, point in self.points(name).items()}


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    with otlp_receiver() as receiver:
        logs = LoggerProvider(shutdown_on_exit=False)
        logs.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(f"{receiver.url}/v1/logs"))
        )
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{receiver.url}/v1/metrics"))
        metrics = MeterProvider([reader], shutdown_on_exit=False)
        tracing = TracerProvider(shutdown_on_exit=False)
        tracing.add_span_processor(
            SimpleSpanProcessor(OTLPSpanExporter(f"{receiver.url}/v1/traces"))
        )
        yield Pipeline(receiver, logs, metrics, tracing.get_tracer("test"))
        for provider in (logs, metrics, tracing):
            provider.shutdown()


def test_an_evaluation_is_an_event_in_the_span_of_its_run(pipeline: Pipeline) -> None:
    with pipeline.tracer.start_as_current_span("the run"):
        trace_id, span_id = current_span_ids()
    when = datetime(2026, 11, 20, 12, 0, 0, 123457, timezone(timedelta(hours=2)))
    record = records.scored(records.refuted(), trace_id=trace_id, span_id=span_id, time=when)
    record = record.model_copy(update={"response": "chatcmpl-1", "root": "outermost"})

    [event] = pipeline.sent(record)

    assert event.event_name == "gen_ai.evaluation.result"
    [span] = pipeline.receiver.spans()
    assert span.name == "the run"
    assert (event.trace_id, event.span_id) == (span.trace_id, span.span_id)
    assert event.flags & 1
    assert event.time_unix_nano == 1_795_168_800_123_457_000
    assert attributes_of(event) == {
        "gen_ai.evaluation.name": "RefChecker",
        "gen_ai.evaluation.score.value": 0.25,
        "gen_ai.evaluation.score.label": "Contradiction",
        "gen_ai.evaluation.explanation": "1 of 3 claims holds.",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-4o-mini",
        "demur.finding": "failed",
        "demur.verdict": "failed",
        "demur.attempt": 1,
        "demur.run.id": record.id,
        "demur.run.root_id": "outermost",
        "demur.run.name": "rag",
    }


def test_a_run_without_a_span_is_not_put_into_the_current_one(pipeline: Pipeline) -> None:
    sink = pipeline.sink()
    with pipeline.tracer.start_as_current_span("of the scoring thread"):
        sink.write(records.scored())
    sink.flush()
    [event] = pipeline.receiver.logs()
    assert (event.trace_id, event.span_id) == (b"", b"")


def test_what_is_not_known_is_left_out(pipeline: Pipeline) -> None:
    record = records.scored(records.found(score=None, passed=None), name=None, model=None)
    [event] = pipeline.sent(record)
    assert set(attributes_of(event)) == {
        *("gen_ai.evaluation.name", "gen_ai.evaluation.score.label", "demur.finding"),
        *("demur.verdict", "demur.attempt", "demur.run.id", "demur.run.root_id"),
    }


def test_undetermined_has_an_error_type_and_no_score(pipeline: Pipeline) -> None:
    [event] = pipeline.sent(records.scored(records.undetermined(why="the model is away")))
    told = attributes_of(event)
    assert told["error.type"] == "undetermined"
    assert told["gen_ai.evaluation.score.label"] == "undetermined"
    assert told["gen_ai.evaluation.explanation"] == "the model is away"
    assert "gen_ai.evaluation.score.value" not in told
    assert "demur.evaluation.score" not in pipeline.receiver.metrics()


def test_a_guards_attempts_are_told_apart(pipeline: Pipeline) -> None:
    record = records.guarded(records.refuted(), records.found(), response="the last one's")
    first, second = map(attributes_of, pipeline.sent(record))
    assert [first["demur.attempt"], second["demur.attempt"]] == [1, 2]
    assert [first["demur.finding"], second["demur.finding"]] == ["failed", "passed"]
    assert [first["demur.verdict"], second["demur.verdict"]] == ["failed", "passed"]
    assert first["demur.outcome"] == second["demur.outcome"] == "recovered"
    assert "gen_ai.response.id" not in first
    assert second["gen_ai.response.id"] == "the last one's"


def test_metrics_add_up_and_hold_no_text_and_no_id(pipeline: Pipeline) -> None:
    pipeline.sent(
        records.scored(records.found(), records.found("FEWL", -0.3, None)),
        records.scored(records.refuted()),
        records.guarded(records.refuted(), records.found(), model=None, response="chatcmpl-9"),
    )

    model = ("gen_ai.response.model", "gpt-4o-mini")
    checker, fewl = (("gen_ai.evaluation.name", name) for name in ("RefChecker", "FEWL"))
    assert pipeline.counted("demur.evaluations") == {
        frozenset({checker, ("demur.finding", "passed"), model}): 1,
        frozenset({checker, ("demur.finding", "failed"), model}): 1,
        frozenset({fewl, ("demur.finding", "scored"), model}): 1,
        frozenset({checker, ("demur.finding", "passed")}): 1,
        frozenset({checker, ("demur.finding", "failed")}): 1,
    }
    cost = records.JUDGING
    kinds = {"input": cost.input_tokens, "output": cost.output_tokens}
    assert pipeline.counted("demur.judge.tokens") == {
        frozenset({by, ("gen_ai.token.type", kind)}): times * tokens
        for by, times in ((checker, 4), (fewl, 1))
        for kind, tokens in kinds.items()
    }
    assert pipeline.counted("demur.runs") == {
        frozenset({("demur.verdict", "scored"), model}): 1,
        frozenset({("demur.verdict", "failed"), model}): 1,
        frozenset({("demur.verdict", "passed"), ("demur.outcome", "recovered")}): 1,
    }
    assert all(
        {key for key, _ in by} <= {"gen_ai.evaluation.name", "gen_ai.response.model"}
        for by in pipeline.points("demur.evaluation.score")
    )
    units = {name: metric.unit for name, metric in pipeline.receiver.metrics().items()}
    assert units == {
        "demur.evaluations": "{evaluation}",
        "demur.evaluation.score": "1",
        "demur.judge.tokens": "{token}",
        "demur.runs": "{run}",
    }


def test_close_leaves_the_providers_open(pipeline: Pipeline) -> None:
    sink = pipeline.sink()
    sink.write(records.scored())
    sink.close()
    assert len(pipeline.receiver.logs()) == 1
    sink.write(records.scored())
    sink.flush()
    assert len(pipeline.receiver.logs()) == 2


def test_without_opentelemetry_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)
    with pytest.raises(MissingExtraError, match=r"OpenTelemetrySink.*'demur\[otel\]'"):
        OpenTelemetrySink()


GLOBALS = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from demur.observe.sinks.otel import OpenTelemetrySink
assert "opentelemetry._logs" not in sys.modules, "imported with the module"
sink = OpenTelemetrySink()
from opentelemetry import metrics
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs import export
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from support import records
sink.write(records.scored())
sink.flush()
# From version to version it has another name.
memory = getattr(export, "InMemoryLogRecordExporter", None) or export.InMemoryLogExporter
kept, reader = memory(), InMemoryMetricReader()
provider = LoggerProvider()
provider.add_log_record_processor(export.BatchLogRecordProcessor(kept))
set_logger_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
sink.write(records.scored())
sink.flush()
[event] = kept.get_finished_logs()
print(event.log_record.event_name)
for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        print(scope.scope.name, sorted(metric.name for metric in scope.metrics)[0])
"""


@pytest.mark.slow
def test_the_global_providers_are_found_when_they_are_set_later(tmp_path: Path) -> None:
    process = Spawned(GLOBALS, tmp_path)
    assert process.end() == 0, process.err
    warned, event, metric = process.out.splitlines()
    assert "no OpenTelemetry SDK is set up" in warned
    assert event == "gen_ai.evaluation.result"
    assert metric == "demur demur.evaluation.score"


async def test_scores_of_chains_side_by_side_are_in_their_own_spans(pipeline: Pipeline) -> None:
    async def upper(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    def judge(sample: Sample) -> Evaluation:
        return Evaluation(name="judge", score=0.5, passed=True, explanation=sample.answer)

    chain: Runnable[Any, Any] = RunnableLambda(str.upper, upper) | RunnableLambda(str.upper, upper)
    handler = ScoreCallbackHandler(judge, sink=pipeline.sink())

    async def request(text: str) -> None:
        with pipeline.tracer.start_as_current_span(text.upper()):
            await chain.ainvoke(text, {"callbacks": [handler]})

    await asyncio.gather(*map(request, "abcdefgh"))
    assert await asyncio.to_thread(handler.close, 30)
    spans = {span.span_id: (span.name, span.trace_id) for span in pipeline.receiver.spans()}
    events = pipeline.receiver.logs()
    assert len(events) == len(spans) == 8
    for event in events:
        name = attributes_of(event)["gen_ai.evaluation.explanation"]
        assert spans[event.span_id] == (name, event.trace_id)
