"""Find what stands where in a text: sentences, words, windows, JSON values, code, citations.

Everything is found as offsets into the original string. The room also makes texts harmless before
they are shown, and letters in other forms plain.
"""

from demur._text.cleaning import harmless, one_line, replace_surrogates
from demur._text.cutting import count_tokens, measured_windows, windows
from demur._text.json_places import Path, Place, path_of, places, written
from demur._text.markdown_code import code_in
from demur._text.marks import (
    FORM,
    NUMBERED,
    Mark,
    marks_in,
    marks_in_prose,
    named_notes_in,
    without_sources,
)
from demur._text.plain_letters import Plain, plain
from demur._text.scripts import UNSPACED, WORD_SIGNS, script_of, word_set, words
from demur._text.splitting import sentences

__all__ = [
    "FORM",
    "NUMBERED",
    "UNSPACED",
    "WORD_SIGNS",
    "Mark",
    "Path",
    "Place",
    "Plain",
    "code_in",
    "count_tokens",
    "harmless",
    "marks_in",
    "marks_in_prose",
    "measured_windows",
    "named_notes_in",
    "one_line",
    "path_of",
    "places",
    "plain",
    "replace_surrogates",
    "script_of",
    "sentences",
    "windows",
    "without_sources",
    "word_set",
    "words",
    "written",
]
