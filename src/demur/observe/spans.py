"""Read the ids of the current OpenTelemetry span, if the process uses OpenTelemetry."""

from __future__ import annotations

import sys
from typing import Any


def current_span_ids() -> tuple[str, str] | tuple[None, None]:
    """Return the trace id and the span id of the current span, as 32 and 16 hexadecimal digits.

    Without a span, both are None. The function imports nothing: if no code in this process has
    imported OpenTelemetry, there is no span. It never raises.
    """
    trace = sys.modules.get("opentelemetry.trace")
    # Another thread may be importing the module right now.
    current = getattr(trace, "get_current_span", None)
    if current is None:
        return None, None
    try:
        context = current().get_span_context()
        return ids_of(context) if context.is_valid else (None, None)
    except Exception:  # a span of an unknown class
        return None, None


def ids_of(context: Any) -> tuple[str, str]:
    """Return the trace id and the span id of a span's context, as hexadecimal digits."""
    return format(context.trace_id, "032x"), format(context.span_id, "016x")
