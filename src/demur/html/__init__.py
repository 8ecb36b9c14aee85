"""An answer with its claims highlighted and its evidence marked, as static HTML.

For notebooks, where `Evaluation`, `Attempt`, `Trace`, `Guarded` and `Record` show themselves, and
for the report. No script, no style but `stylesheet()`, nothing from elsewhere: colours, signs and
underlines by CSS alone, and links from a claim in the answer to its evidence and back.
"""

from demur.html.answers import attempt_html
from demur.html.elements import Element
from demur.html.evaluations import evaluation_html
from demur.html.highlight import Segment, segments
from demur.html.notebook import in_notebook, stylesheet
from demur.html.traces import record_html, trace_html

__all__ = [
    "Element",
    "Segment",
    "attempt_html",
    "evaluation_html",
    "in_notebook",
    "record_html",
    "segments",
    "stylesheet",
    "trace_html",
]
