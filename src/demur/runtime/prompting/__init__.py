"""Build prompts whose texts can give no instructions, and read labels from log-probabilities.

In every `Prompt`, a text under judgement stands between delimiters that it cannot forge, without
any effort by the caller. Delimiters that a model repeats are removed from its reply. A label's
probability is that of its first token.
"""

from demur.runtime.prompting.isolation import as_shown as as_shown
from demur.runtime.prompting.isolation import as_written as as_written
from demur.runtime.prompting.isolation import isolate as isolate
from demur.runtime.prompting.isolation import without_delimiters as without_delimiters
from demur.runtime.prompting.isolation import without_echo as without_echo
from demur.runtime.prompting.logprobs import begun_by as begun_by
from demur.runtime.prompting.logprobs import label_shares as label_shares
from demur.runtime.prompting.logprobs import word_share as word_share
from demur.runtime.prompting.prompts import Example, Prompt

__all__ = [  # other names serve other rooms and are not part of the public interface
    "Example",
    "Prompt",
]
