"""Test `current_span_ids`, which gives the current span at almost no cost."""

from __future__ import annotations

import sys

import pytest
from opentelemetry import trace

from demur.observe.spans import current_span_ids


def test_the_ids_are_those_of_the_current_span_with_leading_zeros() -> None:
    context = trace.SpanContext(trace_id=0xAB, span_id=0xC, is_remote=True)
    assert current_span_ids() == (None, None)
    with trace.use_span(trace.NonRecordingSpan(context)):
        assert current_span_ids() == ("0" * 30 + "ab", "0" * 15 + "c")
    assert current_span_ids() == (None, None)


def test_where_nobody_uses_opentelemetry_it_is_not_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert current_span_ids() == (None, None)
    assert "opentelemetry.trace" not in sys.modules
