"""Show answers with highlighted claims, or with their sources, as static HTML.

Notebooks use these views to show an `Evaluation`, `Attempt`, `Trace`, `Guarded` or `Record`. The
report uses them too, and web front ends can show `cited_html` to readers. The HTML has no scripts,
loads nothing, and needs no style but `stylesheet()`. Links lead from a claim in the answer to its
evidence and back.
"""

from demur.views.answers import attempt_html
from demur.views.citing import cited_html
from demur.views.description import usage_line as usage_line
from demur.views.elements import Element as Element
from demur.views.evaluations import evaluation_html
from demur.views.highlight import Segment as Segment
from demur.views.highlight import segments as segments
from demur.views.notebook import notebook_html as notebook_html
from demur.views.styling import stylesheet
from demur.views.traces import record_html, trace_html
from demur.views.words import category_words as category_words
from demur.views.words import failure_words as failure_words
from demur.views.words import outcome_look as outcome_look
from demur.views.words import verdict_look as verdict_look
from demur.views.words import what_the_guard_did as what_the_guard_did

__all__ = [  # the other names serve other rooms, and are not public
    "attempt_html",
    "cited_html",
    "evaluation_html",
    "record_html",
    "stylesheet",
    "trace_html",
]
