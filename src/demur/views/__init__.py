"""An answer with its claims highlighted, or with its sources, as static HTML.

For notebooks, where `Evaluation`, `Attempt`, `Trace`, `Guarded` and `Record` show themselves, for
the report, and for web front ends, which show `cited_html` to readers. No script, no style but
`stylesheet()`, nothing from elsewhere: colours, signs and underlines by CSS alone, and links from a
claim in the answer to its evidence and back.
"""

from demur.views.answers import attempt_html
from demur.views.citing import cited_html
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

__all__ = [  # what is not named here serves other rooms, and is not promised
    "attempt_html",
    "cited_html",
    "evaluation_html",
    "record_html",
    "stylesheet",
    "trace_html",
]
