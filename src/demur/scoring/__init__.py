"""Score data sets of answers: read rows, write results line by line, and resume at any point."""

from demur.scoring.preferences import RESAMPLES as RESAMPLES
from demur.scoring.preferences import Interval as Interval
from demur.scoring.preferences import Preference as Preference
from demur.scoring.preferences import Scores as Scores
from demur.scoring.preferences import as_column as as_column
from demur.scoring.preferences import best_of as best_of
from demur.scoring.preferences import compared as compared
from demur.scoring.preferences import percentiles as percentiles
from demur.scoring.preferences import preference as preference
from demur.scoring.preferences import same_length as same_length
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
