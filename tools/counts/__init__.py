"""What fixed workloads ask for: `__main__` compares it with what is on record."""

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
# What is counted is this checkout, whichever is installed; the models are its tests'.
sys.path[:0] = [str(_ROOT / "src"), str(_ROOT / "tests")]
os.environ["DEMUR_SECRET"] = "counts"  # else each process would show texts with other delimiters
