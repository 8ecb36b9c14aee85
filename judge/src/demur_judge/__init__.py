"""Carry the files of demur's two own judges. The model card, `README.md`, says what they are.

`FOLDER` holds them, beside `SHA256SUMS` with their sums. demur checks the sums when it loads the
files.
"""

from pathlib import Path

__version__ = "0.1.0"

FOLDER = Path(__file__).parent
"""The folder with the files."""

TEMPERATURE, SHIFT = 1.9, 0.74
"""By what demur divides the log-odds of Entailment that the small judge gives, and what it adds
then. The model was trained on harder claims than answers have, and says "no" too often. Fitted on
LLM-AggreFact's claims, so that of those with a probability about that share is supported."""
