"""Define the tables of RefChecker's human annotations."""

from __future__ import annotations

from demur_research.tables.refchecker.checking import CHECKER
from demur_research.tables.refchecker.correlation import CORRELATION
from demur_research.tables.refchecker.ranking import RANKING

TABLES = (RANKING, CORRELATION, CHECKER)
