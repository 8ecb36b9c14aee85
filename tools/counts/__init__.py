"""What fixed workloads ask for: `__main__` compares it with what is on record."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # whose models these are
os.environ["DEMUR_SECRET"] = "counts"  # else each process would show texts with other delimiters
