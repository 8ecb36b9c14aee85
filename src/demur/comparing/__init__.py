"""Compare detectors on a labelled set, two runs over the same questions, and judges with people."""

from demur.comparing.agreement import Agreed as Agreed
from demur.comparing.agreement import agreements as agreements
from demur.comparing.agreement import slices as slices
from demur.comparing.changes import Condition as Condition
from demur.comparing.changes import Pair as Pair
from demur.comparing.changes import changed as changed
from demur.comparing.changes import changes_markdown as changes_markdown
from demur.comparing.changes import pair_up as pair_up
from demur.comparing.comparison import Compared, Comparison, Quality, read_comparison
from demur.comparing.comparison import Cost as Cost
from demur.comparing.detectors import DETECTORS, Detector
from demur.comparing.detectors import has_sources as has_sources
from demur.comparing.detectors import is_entity as is_entity
from demur.comparing.figures import Estimate
from demur.comparing.labelled import EXTRA as EXTRA
from demur.comparing.labelled import GROUP as GROUP
from demur.comparing.labelled import Label, Labelled, read_labelled
from demur.comparing.labelled import Told as Told
from demur.comparing.labelled import write_notes as write_notes
from demur.comparing.tables import COSTS as COSTS
from demur.comparing.tables import QUALITY as QUALITY
from demur.comparing.tables import about as about
from demur.comparing.tables import cost_heads as cost_heads
from demur.comparing.tables import cost_rows as cost_rows
from demur.comparing.tables import csv_table, markdown
from demur.comparing.tables import decimal as decimal
from demur.comparing.tables import interval as interval
from demur.comparing.tables import pareto as pareto
from demur.comparing.tables import quality_rows as quality_rows

__all__ = [  # other names serve other rooms and are not part of the public interface
    "DETECTORS",
    "Compared",
    "Comparison",
    "Detector",
    "Estimate",
    "Label",
    "Labelled",
    "Quality",
    "csv_table",
    "markdown",
    "read_comparison",
    "read_labelled",
]
