"""Count what fixed workloads ask of models; `__main__` compares the counts with the record."""

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
# This checkout is counted, whichever version is installed. The models come from its tests.
sys.path[:0] = [str(_ROOT / "src"), str(_ROOT / "tests")]
os.environ["DEMUR_SECRET"] = "counts"  # otherwise, each process would use other delimiters
