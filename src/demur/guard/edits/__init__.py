"""Edit an answer that stays the chain's own: add marks, and take out failing sentences.

The functions of this room know no guard and ask no model. A quote is copied from its document, and
is left out if it does not stand there. No text of a document can make a mark, a link or HTML in an
answer.
"""

from demur.guard.edits.addresses import title_of as title_of
from demur.guard.edits.citations import Citation
from demur.guard.edits.citations import Place as Place
from demur.guard.edits.citations import citations_of as citations_of
from demur.guard.edits.citations import document_of as document_of
from demur.guard.edits.citations import place_at as place_at
from demur.guard.edits.citations import places_of as places_of
from demur.guard.edits.forms import FORMS as FORMS
from demur.guard.edits.forms import Cited as Cited
from demur.guard.edits.forms import Form as Form
from demur.guard.edits.forms import annotation as annotation
from demur.guard.edits.forms import cited as cited
from demur.guard.edits.remainder import Remainder as Remainder
from demur.guard.edits.remainder import announces as announces
from demur.guard.edits.remainder import remainder as remainder

__all__ = [  # other names serve other rooms and are not part of the public interface
    "Citation",
]
