"""Prompts whose texts can give no instructions, and labels read from log-probabilities.

What the room promises to the others: a text under judgement stands between delimiters that it
cannot forge, in every `Prompt` and without anybody's having to think of it; what a model repeats of
the delimiters is taken out of its reply; a label's probability is that of its first token, less the
model's bias where that was measured.
"""

from demur.prompting.isolation import (
    as_shown,
    as_written,
    isolate,
    without_delimiters,
    without_echo,
)
from demur.prompting.logprobs import Calibration, label_logprobs, mean_bias, probabilities
from demur.prompting.prompts import Example, Prompt

__all__ = [
    "Calibration",
    "Example",
    "Prompt",
    "as_shown",
    "as_written",
    "isolate",
    "label_logprobs",
    "mean_bias",
    "probabilities",
    "without_delimiters",
    "without_echo",
]
