"""Which quantities of a claim stand nowhere in its evidence.

Of the libraries, quantulum3 joins neighbours ("3 May 1712 one thousand" is 1,713,000 there),
text2num reads number words only, and dateparser takes a plain 50 for a date: so this is our own.
"""

from demur.evaluators.refchecker.quantities.missing import missing_quantities as missing_quantities
