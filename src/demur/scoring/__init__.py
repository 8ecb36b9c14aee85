"""Data sets of answers, scored: rows of a file in, lines of results out, resumable at any point."""

from demur.scoring.ledger import Ledger
from demur.scoring.results import Result, Results, ScoringError, is_results, read_results
from demur.scoring.rows import Data, Row, read_fields
from demur.scoring.run import Input, Progress, Run, open_run, read_input
from demur.scoring.summary import Above, Figures, Summary, summarise

__all__ = [
    "Above",
    "Data",
    "Figures",
    "Input",
    "Ledger",
    "Progress",
    "Result",
    "Results",
    "Row",
    "Run",
    "ScoringError",
    "Summary",
    "is_results",
    "open_run",
    "read_fields",
    "read_input",
    "read_results",
    "summarise",
]
