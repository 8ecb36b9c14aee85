"""Find the quantities of a claim that stand nowhere in its evidence.

No library reads quantities as needed here: quantulum3 joins neighbours ("3 May 1712 one thousand"
becomes 1,713,000), text2num reads only number words, and dateparser takes a plain 50 for a date.
"""

from demur.evaluators.refchecker.quantities.missing import missing_quantities as missing_quantities
