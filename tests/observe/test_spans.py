"""Test `current_span_ids`, which gives the current span at almost no cost."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from demur.observe.spans import current_span_ids


def test_the_ids_are_those_of_the_current_span() -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    assert current_span_ids() == (None, None)
    with tracer.start_as_current_span("outer") as outer:
        with tracer.start_as_current_span("inner") as inner:
            assert current_span_ids() == _ids(inner)
        assert current_span_ids() == _ids(outer)
    assert current_span_ids() == (None, None)


def _ids(span: trace.Span) -> tuple[str, str]:
    context = span.get_span_context()
    trace_id, span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    assert (len(trace_id), len(span_id)) == (32, 16)
    return trace_id, span_id


def test_leading_zeros_stay() -> None:
    context = trace.SpanContext(trace_id=0xAB, span_id=0xC, is_remote=True)
    with trace.use_span(trace.NonRecordingSpan(context)):
        assert current_span_ids() == ("0" * 30 + "ab", "0" * 15 + "c")


def test_where_nobody_uses_opentelemetry_it_is_not_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert current_span_ids() == (None, None)
    assert "opentelemetry.trace" not in sys.modules


def test_a_module_that_is_just_being_imported_has_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", ModuleType("opentelemetry.trace"))
    assert current_span_ids() == (None, None)


def test_a_span_that_fails_does_not_fail_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SimpleNamespace(get_current_span=lambda: object())
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", broken)
    assert current_span_ids() == (None, None)
