"""Hold texts in many languages that look harmless, of which some state something.

One file a language. The statements are dressed as refusals, greetings or ignorance; the others
state nothing. They were written by language models that knew none of demur's rules, and a third of
each file was held out. It was measured unread; then the rules were mended by what it showed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demur_research.texts import rows_of

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Text:
    """Hold one text."""

    text: str
    language: str
    """The code of the language in ISO 639-1."""
    states: bool
    """Whether the text states something that must be checked."""
    kind: str
    """What the text is, such as "third-party ignorance" or "offer of help"."""
    english: str
    """A translation."""
    held_out: bool
    """Whether the text was set apart while the rules were written."""
    known: bool
    """Whether demur has a file of this language."""


@cache
def texts() -> tuple[Text, ...]:
    """Return all texts, in the order of the files."""
    return tuple(_read())


def _read() -> Iterator[Text]:
    for path in sorted(_FOLDER.glob("*.jsonl")):
        for row in rows_of(path):
            yield Text(**{"language": path.stem, "known": True, **row})
