"""Prompts whose texts can give no instructions, and labels read from log-probabilities.

What the room promises to the others: a text under judgement stands between delimiters that it
cannot forge, in every `Prompt` and without anybody's having to think of it; what a model repeats of
the delimiters is taken out of its reply; a label's probability is that of its first token, less the
model's bias where that was measured.
"""

from demur.prompting.isolation import as_shown as as_shown
from demur.prompting.isolation import as_written as as_written
from demur.prompting.isolation import isolate as isolate
from demur.prompting.isolation import without_delimiters as without_delimiters
from demur.prompting.isolation import without_echo as without_echo
from demur.prompting.logprobs import Calibration as Calibration
from demur.prompting.logprobs import label_logprobs as label_logprobs
from demur.prompting.logprobs import mean_bias as mean_bias
from demur.prompting.logprobs import probabilities as probabilities
from demur.prompting.logprobs import word_share as word_share
from demur.prompting.prompts import Example, Prompt

__all__ = [  # what is not named here serves other rooms, and is not promised
    "Example",
    "Prompt",
]
