"""What a log holds: opened, selected, summed up, followed and exported."""

from demur.observe.log.exports import Exported, export
from demur.observe.log.following import Following
from demur.observe.log.opening import Damaged, Log, LogError, open_log
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
    "By",
    "Damaged",
    "Exported",
    "Filters",
    "Following",
    "Group",
    "Judgement",
    "Listed",
    "Log",
    "LogError",
    "Totals",
    "export",
    "find",
    "open_log",
    "records",
    "select",
    "short",
    "summarise",
    "worst",
]
