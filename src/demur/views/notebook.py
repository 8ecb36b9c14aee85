"""Make the HTML that a notebook shows: the style sheet, and then the view."""

from __future__ import annotations

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


def notebook_html(value: object) -> str:
    """Return the HTML that a notebook shows for a value.

    Raises:
        TypeError: There is no view for a value of this type.
    """
    return str.__str__(styled(_view(value)))


def _view(value: object) -> Element:
    match value:
        case Evaluation():
            return evaluation_html(value)
        case Attempt():
            return attempt_html(value)
        case Trace():
            return trace_html(value)
        case Record():
            return record_html(value)
        case Guarded():
            return trace_html(value.trace, _returned(value.output))
    raise TypeError(
        "expected an Evaluation, Attempt, Trace, Record or Guarded to show, got "
        f"{type(value).__name__}"
    )


def _returned(output: object) -> str | None:
    try:
        return find_answer(output).text
    except DemurError:  # only the guard's `answer` argument finds it; the trace has the answer
        return None
