"""Open a log, select its runs, sum them up and export them.

SQL can ask the same of the tables, which `demur.observe.tables` defines.
"""

from demur.observe.log.answers import JudgedAnswer, LoggedAnswer, answered, delivered, judged
from demur.observe.log.exports import export_csv
from demur.observe.log.filters import EVERY, By, Filters
from demur.observe.log.labels import LABEL, labels_of_attempts, read_labels
from demur.observe.log.labels import truth as truth
from demur.observe.log.opening import Log, open_log
from demur.observe.log.reading import Damaged, LogError
from demur.observe.log.selection import find, records, worst
from demur.observe.log.totals import Group, Totals, summarise
from demur.observe.places import database_of as database_of

__all__ = [  # the other names serve other rooms, and are not public
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
    "delivered",
    "export_csv",
    "find",
    "judged",
    "labels_of_attempts",
    "open_log",
    "read_labels",
    "records",
    "summarise",
    "worst",
]
