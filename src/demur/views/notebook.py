"""Make the HTML that a notebook shows: the style sheet, and then the view."""

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
    """Return the HTML that a notebook shows for a value.

    Raises:
        TypeError: There is no view for a value of this type.
    """
    raise TypeError(
        "expected an Evaluation, Attempt, Trace, Record or Guarded to show, got "
        f"{type(value).__name__}"
    )


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
    # The trace, and the output if it differs from the last answer.
    try:
        output = find_answer(value.output).text
    except DemurError:  # only the guard's `answer` argument finds it; the trace has the answer
        output = None
    return _alone(trace_html(value.trace, output))


def _alone(view: Element) -> str:
    return str.__str__(styled(view))
