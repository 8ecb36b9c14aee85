"""What a notebook is given: the style sheet, and then the view."""

from __future__ import annotations

from functools import singledispatch

from demur.errors import DemurError
from demur.guard import Attempt, Guarded, Trace
from demur.observe import Record
from demur.schema import Evaluation
from demur.shapes import find_answer
from demur.views.answers import attempt_html
from demur.views.elements import Element
from demur.views.evaluations import evaluation_html
from demur.views.styling import styled
from demur.views.traces import record_html, trace_html


@singledispatch
def notebook_html(value: object) -> str:
    """How a notebook shows a value, by itself.

    Raises:
        TypeError: There is no view of such a value.
    """
    raise TypeError(f"there is no view of a {type(value).__name__}")


@notebook_html.register
def _(value: Evaluation) -> str:
    return _alone(evaluation_html(value))


@notebook_html.register
def _(value: Attempt) -> str:
    return _alone(attempt_html(value))


@notebook_html.register
def _(value: Trace) -> str:
    return _alone(trace_html(value))


@notebook_html.register
def _(value: Record) -> str:
    return _alone(record_html(value))


@notebook_html.register(Guarded)
def _(value: Guarded[object]) -> str:
    # The trace, and the output where it is none of its answers.
    try:
        output = find_answer(value.output).text
    except DemurError:  # found by a reader of the guard's own; the trace has the answer
        output = None
    return _alone(trace_html(value.trace, output))


def _alone(view: Element) -> str:
    return str.__str__(styled(view))
