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

WORDS = {"temperature": 1.86, "shift": -0.1, "missing": 0.07, "free": 4, "foreign": 0.7}
"""What RefChecker makes of the small judge's log-odds beside the words of a claim: it divides them,
adds the shift, takes off `missing` for each content word beyond the first `free` ones that no text
has, and `foreign` if no text has two of them. Fitted on claims of LLM-AggreFact and of
`everyday.jsonl.gz`, half of the weight each; `shift` is 0.1 higher, where AggreFact's balanced
accuracy is best."""
