"""Find the sentences of an answer that is being generated, each as soon as it is complete."""

from __future__ import annotations

import re

from demur._text import sentences, words

_LINE_BREAK = re.compile(r"[\r\n\u2028\u2029]")
_FAR = 200
"""The number of characters in a row without a letter, such as numbers of a list, after which they
are not read again."""
_LONG = 1000
"""The length in characters from which a sentence is longer than ordinary ones."""
_PART = 8
"""The divisor for long sentences: one is read again when it has grown by its length divided by
this."""


class Sentences:
    """Hold the sentences of a growing text.

    They are the sentences that `demur._text.sentences` finds in the whole text, whatever the
    pieces, with one exception. A sentence without a letter, such as the number of an item, belongs
    to the next one. If a quotation is closed long after it was opened, sentences that were already
    complete stay as they are.

    A sentence is complete when a whole word of the next one is there, because "Dr." may be followed
    by a name and "3." by digits. Only the incomplete end of the text is read again, and a long
    sentence only when it has grown by a part of its length. So the time is linear in the text's
    length.
    """

    def __init__(self) -> None:
        """Start with an empty text."""
        self.text = ""
        self.spans: list[tuple[int, int]] = []
        """The places of the complete sentences."""
        self._start = 0
        """The place from which the text is still to be cut into sentences."""
        self._line = 0
        """The beginning of the line that `_start` is in."""
        self._unlettered: int | None = None
        """The beginning of the next sentence, if its first characters were cut off before; else
        None."""
        self._due = 0
        """The length of the text from which it is to be read again."""

    def add(self, piece: str) -> None:
        """Add a piece of text."""
        self.text += piece
        if _LINE_BREAK.search(piece):
            self._due = 0  # the long sentence is over
        if len(self.text) < self._due or not piece.strip():
            return
        spans = sentences(self.text, self._start, self._line)
        begun = self.text[slice(*spans[-1])]
        word = next(words(begun), None)
        complete = len(spans) - (1 if word is not None and word[2] < len(begun) else 2)
        if complete > 0:
            self._cut(spans[:complete], spans[complete][0])
        so_far = spans[-1][1] - spans[-1][0]
        self._due = len(self.text) + (so_far // _PART if so_far > _LONG else 0)

    def end(self) -> None:
        """Complete the last sentence, as no more text follows."""
        if spans := sentences(self.text, self._start, self._line):
            self._cut(spans, end := spans[-1][1])
            if self._start < end or self._unlettered is not None:
                begin = self._start if self._unlettered is None else self._unlettered
                self.spans.append((begin, end))

    def _cut(self, complete: list[tuple[int, int]], following: int) -> None:
        """Record complete sentences; the rest of the text begins at `following`."""
        start: int | None = None
        for first, end in complete:
            start = first if start is None else start
            if any(map(str.isalpha, self.text[first:end])):
                begin = start if self._unlettered is None else self._unlettered
                self.spans.append((begin, end))
                start = self._unlettered = None
        if start is None:
            start = following
        elif following - start > _FAR:  # or an endless row of numbers would be cut again and again
            self._unlettered = start if self._unlettered is None else self._unlettered
            start = following
        for match in _LINE_BREAK.finditer(self.text, self._start, start):
            self._line = match.end()
        self._start = start
