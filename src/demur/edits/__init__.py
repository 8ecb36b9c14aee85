"""What changes in an answer that stays the chain's: marks put in, failing sentences taken out.

What the room promises to the others: plain functions that know no guard and ask no model; a quote
is copied from its document, and is not there where it does not stand in it; nothing of a document
can make a mark, a link or HTML in an answer.
"""

from demur.edits.citations import Citation
from demur.edits.citations import Place as Place
from demur.edits.citations import citations_of as citations_of
from demur.edits.citations import place_at as place_at
from demur.edits.citations import places_of as places_of
from demur.edits.forms import FORMS as FORMS
from demur.edits.forms import Cited as Cited
from demur.edits.forms import Form as Form
from demur.edits.forms import annotation as annotation
from demur.edits.forms import cited as cited
from demur.edits.stripping import Remainder as Remainder
from demur.edits.stripping import remainder as remainder

__all__ = [  # what is not named here serves other rooms, and is not promised
    "Citation",
]
