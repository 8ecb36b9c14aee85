"""What a log holds: opened, selected, summed up and exported. SQL may ask it the same.

The tables are in `demur.observe.tables`.
"""

from demur.observe.log.answers import JudgedAnswer, LoggedAnswer, answered, judged
from demur.observe.log.exports import export_csv
from demur.observe.log.filters import EVERY, By, Filters
from demur.observe.log.labels import LABEL, read_labels
from demur.observe.log.labels import truth as truth
from demur.observe.log.opening import Log, open_log
from demur.observe.log.reading import Damaged, LogError
from demur.observe.log.selection import find, records, worst
from demur.observe.log.totals import Group, Totals, summarise
from demur.observe.places import database_of as database_of

__all__ = [  # what is not named here serves other rooms, and is not promised
    "EVERY",
    "LABEL",
    "By",
    "Damaged",
    "Filters",
    "Group",
    "JudgedAnswer",
    "Log",
    "LogError",
    "LoggedAnswer",
    "Totals",
    "answered",
    "export_csv",
    "find",
    "judged",
    "open_log",
    "read_labels",
    "records",
    "summarise",
    "worst",
]
