"""Score data sets of answers: read rows, write results line by line, and resume at any point."""

from demur.scoring.results import Note as Note
from demur.scoring.results import Result as Result
from demur.scoring.results import Results as Results
from demur.scoring.results import ScoringError
from demur.scoring.results import is_results as is_results
from demur.scoring.results import read_lines as read_lines
from demur.scoring.results import read_results as read_results
from demur.scoring.rows import Data
from demur.scoring.rows import Row as Row
from demur.scoring.rows import read_fields as read_fields
from demur.scoring.run import Prepare as Prepare
from demur.scoring.run import Progress, open_run, read_input
from demur.scoring.run import Run as Run
from demur.scoring.scorers import Scorer as Scorer
from demur.scoring.scorers import Scorers as Scorers
from demur.scoring.summary import Figures, Summary, summarise

__all__ = [  # the other names serve other rooms, and may change
    "Data",
    "Figures",
    "Progress",
    "ScoringError",
    "Summary",
    "open_run",
    "read_input",
    "summarise",
]
