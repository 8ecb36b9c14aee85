"""Show answers with highlighted claims, or with their sources, as static HTML.

Notebooks show an `Evaluation`, `Attempt`, `Trace`, `Guarded` or `Record` by `notebook_html`, which
their `_repr_html_` calls. Web front ends can show `cited_html` to readers. The HTML has no scripts,
loads nothing, and needs no style but `stylesheet()`. Links lead from a claim in the answer to its
evidence and back.
"""

from demur.views.citing import cited_html
from demur.views.description import USAGE_HEADS as USAGE_HEADS
from demur.views.description import usage_cells as usage_cells
from demur.views.description import usage_line as usage_line
from demur.views.notebook import notebook_html
from demur.views.styling import stylesheet
from demur.views.traces import record_html as record_html
from demur.views.words import category_words as category_words
from demur.views.words import counted as counted
from demur.views.words import failure_words as failure_words
from demur.views.words import outcome_look as outcome_look
from demur.views.words import plural as plural
from demur.views.words import verdict_look as verdict_look
from demur.views.words import what_the_guard_did as what_the_guard_did

__all__ = [  # the other names serve other rooms, and are not public
    "cited_html",
    "notebook_html",
    "stylesheet",
]
