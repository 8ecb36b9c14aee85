"""An answer with its claims highlighted and its evidence marked, as static HTML.

For notebooks, where `Evaluation`, `Attempt`, `Trace`, `Guarded` and `Record` show themselves, and
for the report. No script, no style but `stylesheet()`, nothing from elsewhere: colours, signs and
underlines by CSS alone, and links from a claim in the answer to its evidence and back.
"""

from demur.views.answers import attempt_html
from demur.views.elements import Element
from demur.views.evaluations import evaluation_html
from demur.views.highlight import Segment, segments
from demur.views.notebook import notebook_html, stylesheet
from demur.views.traces import record_html, trace_html
from demur.views.words import outcome_look, verdict_look, what_the_guard_did

__all__ = [
    "Element",
    "Segment",
    "attempt_html",
    "evaluation_html",
    "notebook_html",
    "outcome_look",
    "record_html",
    "segments",
    "stylesheet",
    "trace_html",
    "verdict_look",
    "what_the_guard_did",
]
