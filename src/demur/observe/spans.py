"""The OpenTelemetry span that is current, where anybody uses OpenTelemetry."""

from __future__ import annotations

import sys


def current_span_ids() -> tuple[str, str] | tuple[None, None]:
    """Trace id and span id of the current span, as 32 and 16 hexadecimal digits.

    Nothing is imported: where nobody in this process did, there is no span. Never raises.
    """
    trace = sys.modules.get("opentelemetry.trace")
    # Another thread may be in the middle of the import.
    current = getattr(trace, "get_current_span", None)
    if current is None:
        return None, None
    try:
        context = current().get_span_context()
        if not context.is_valid:
            return None, None
        return format(context.trace_id, "032x"), format(context.span_id, "016x")
    except Exception:  # a span of somebody's own making
        return None, None
