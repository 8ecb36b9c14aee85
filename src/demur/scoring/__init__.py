"""Score data sets of answers: read rows, write results line by line, and resume at any point."""

from demur.scoring.ledger import Ledger
from demur.scoring.results import Note as Note
from demur.scoring.results import Result, Results, ScoringError
from demur.scoring.results import is_results as is_results
from demur.scoring.results import read_lines as read_lines
from demur.scoring.results import read_results as read_results
from demur.scoring.rows import Data, Row, read_fields
from demur.scoring.run import Input, Progress, Run, open_run, read_input
from demur.scoring.run import Prepare as Prepare
from demur.scoring.scorers import Scorer
from demur.scoring.scorers import Scorers as Scorers
from demur.scoring.summary import Above, Figures, Summary, summarise

__all__ = [  # the other names serve other rooms, and may change
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
    "Scorer",
    "ScoringError",
    "Summary",
    "open_run",
    "read_fields",
    "read_input",
    "summarise",
]
