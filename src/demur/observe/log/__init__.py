"""What a log holds: opened, selected, summed up, followed and exported."""

from demur.observe.log.answers import Answered, Judged, answered
from demur.observe.log.errors import LogError
from demur.observe.log.exports import Exported, export
from demur.observe.log.following import Following
from demur.observe.log.labels import read_labels
from demur.observe.log.opening import Log, open_log
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

__all__ = [
    "EVERY",
    "Answered",
    "By",
    "Damaged",
    "Exported",
    "Filters",
    "Following",
    "Group",
    "Judged",
    "Judgement",
    "Listed",
    "Log",
    "LogError",
    "Totals",
    "answered",
    "export",
    "find",
    "open_log",
    "read_labels",
    "records",
    "select",
    "short",
    "summarise",
    "worst",
]
