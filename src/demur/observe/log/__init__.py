"""What a log holds: opened, selected, summed up, followed and exported."""

from demur.observe.log.answers import JudgedAnswer, LoggedAnswer, answered
from demur.observe.log.errors import LogError
from demur.observe.log.exports import ExportedLog, export
from demur.observe.log.following import Following
from demur.observe.log.labels import LABEL, read_labels
from demur.observe.log.opening import Log, in_memory, open_log
from demur.observe.log.reading import Damaged
from demur.observe.log.selection import (
    EVERY,
    Filters,
    Judgement,
    Listed,
    find,
    records,
    select,
    short,
    worst,
)
from demur.observe.log.totals import By, Group, Totals, summarise
from demur.observe.tables import put

__all__ = [
    "EVERY",
    "LABEL",
    "By",
    "Damaged",
    "ExportedLog",
    "Filters",
    "Following",
    "Group",
    "JudgedAnswer",
    "Judgement",
    "Listed",
    "Log",
    "LogError",
    "LoggedAnswer",
    "Totals",
    "answered",
    "export",
    "find",
    "in_memory",
    "open_log",
    "put",
    "read_labels",
    "records",
    "select",
    "short",
    "summarise",
    "worst",
]
