"""The sentences of an answer that is being generated, each as soon as it is complete."""

from __future__ import annotations

import re

from demur._text import sentences, words

_LINE_BREAK = re.compile(r"[\r\n\u2028\u2029]")
_FAR = 200
"""Characters without a letter in a row, such as a list's numbers, that nobody would call few."""
_LONG = 1000
"""Characters of a sentence that nobody would call ordinary."""
_PART = 8
"""A sentence that is long is looked at again when it has grown by this part of its length."""


class Sentences:
    """The sentences of a text that grows.

    They are those that `demur._text.sentences` finds in the whole text, whatever the pieces, except
    that one without a letter, such as the number of a list's item, belongs to the next one. Where
    a quotation is closed long after it was opened, what was already told stays as it was.

    A sentence is complete when a whole word of the next is there: "Dr." goes on with a name, "3."
    with digits. Only what is not complete is looked at again, and a long sentence only when it has
    grown by a part of its length, so that the time is linear in the text's.
    """

    def __init__(self) -> None:
        """There is no text yet."""
        self.text = ""
        self.spans: list[tuple[int, int]] = []
        """The sentences that are complete."""
        self._start = 0
        """Where the text begins that is still to be cut."""
        self._line = 0
        """Where the line begins that this is in."""
        self._unlettered: int | None = None
        """Where the next sentence begins, if what it begins with was cut off before."""
        self._due = 0
        """How long the text must be to be looked at again."""

    def add(self, piece: str) -> None:
        """Go on with the text."""
        self.text += piece
        if _LINE_BREAK.search(piece):
            self._due = 0  # another sentence follows, and that is an ordinary one
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
        """Say that there is no more text."""
        if spans := sentences(self.text, self._start, self._line):
            self._cut(spans, end := spans[-1][1])
            if self._start < end or self._unlettered is not None:
                begin = self._start if self._unlettered is None else self._unlettered
                self.spans.append((begin, end))

    def _cut(self, complete: list[tuple[int, int]], following: int) -> None:
        """Take these for complete; the text goes on at `following`."""
        start: int | None = None
        for first, end in complete:
            start = first if start is None else start
            if any(map(str.isalpha, self.text[first:end])):
                begin = start if self._unlettered is None else self._unlettered
                self.spans.append((begin, end))
                start = self._unlettered = None
        if start is None:
            start = following
        elif following - start > _FAR:  # or numbers without end would be cut again and again
            self._unlettered = start if self._unlettered is None else self._unlettered
            start = following
        for match in _LINE_BREAK.finditer(self.text, self._start, start):
            self._line = match.end()
        self._start = start
