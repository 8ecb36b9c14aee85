"""Build the text of an answer that leaves by sentences, with marks and without what fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document

from demur.evaluators import Piece, piece_at
from demur.guard.edits import (
    Citation,
    Place,
    Remainder,
    annotation,
    announces,
    cited,
    place_at,
)
from demur.guard.recoveries import Cite
from demur.schema import Evaluation

_WHOLE = re.compile(r"[ \t]*\||.*(?:```|~~~)", re.DOTALL)
"""How tables and blocks of code begin, which stay or go as a whole."""
_GOES_ON = re.compile(
    r"(?:\]:|=)\s*$|\[\^|^[\W_]*(?:sources?|ref(?:erence)?s?|quellen?)\W*$", re.IGNORECASE
)
"""How a sentence looks that a later one may complete to a citation of the chain's own or an
address."""
_PAIRS = (("[", "]"), ("(", ")"), ("【", "】"), ("<", ">"))


def _is_open(sentence: str) -> bool:
    """Return whether a later sentence may complete a citation or an address in this one."""
    uneven = any(sentence.count(first) != sentence.count(last) for first, last in _PAIRS)
    return uneven or sentence.count("`") % 2 == 1 or _GOES_ON.search(sentence) is not None


class LeavingText:
    """Build the text of an answer that has left so far.

    Some text holds up what follows until the end of the answer. With citations or `strips`, tables
    and code do. With citations, so does a sentence that a later one may complete. With `strips`, so
    does a sentence that refers to a removed one. A heading, and a sentence that announces a list,
    leave with the text under them.
    """

    def __init__(self, cite: Cite | None, strips: bool) -> None:
        """Start with an empty text.

        `cite` says which citations to add; None: none. `strips` says whether failing sentences are
        taken out.
        """
        self.text = ""
        self.ends: list[int] = [0]
        """The length of the text after each sentence."""
        self.held = False
        """Whether nothing more can leave before the end of the answer."""
        self._form = None if cite is None else cite.form
        self._known = "" if cite is None else cite.known
        self._strips = strips
        self._left = Remainder("", [])
        self._end = 0

    def skip(self, answer: str, span: tuple[int, int]) -> None:
        """Note a sentence that does not leave."""
        self._left = self._with(answer, piece_at(answer, *span), removed=True)

    def leave(
        self,
        answer: str,
        span: tuple[int, int],
        evaluations: Sequence[Evaluation],
        contexts: Sequence[Document],
    ) -> tuple[str, list[dict[str, Any]]]:
        """Add a sentence that leaves.

        Args:
            answer: The answer as far as it has been generated.
            span: The place of the sentence, which follows the sentence before.
            evaluations: The evaluations of the sentence by itself.
            contexts: The documents that it was checked against.

        Returns:
            The text to send next, and the citations in it as dicts in the form of LangChain's
            content blocks. Both are empty if the sentence is held up.
        """
        if self._form is None and not self._strips:
            piece, self._end = answer[self._end : span[1]], span[1]
            self._grown(self.text + piece)
            return piece, []
        sentence = answer[slice(*span)]
        if _WHOLE.match(sentence) or (self._form is not None and _is_open(sentence)):
            self.held = True
            return "", []
        return self._edited(answer, piece_at(answer, *span), evaluations, contexts)

    def _edited(
        self,
        answer: str,
        piece: Piece,
        evaluations: Sequence[Evaluation],
        contexts: Sequence[Document],
    ) -> tuple[str, list[dict[str, Any]]]:
        sentence = answer[piece.start : piece.end]
        said = sentence
        citations: tuple[Citation, ...] = ()
        if self._form is not None:
            kind = place_at(answer, piece.start, piece.end).kind
            whole = [Place(0, len(sentence), kind)]
            found = cited(sentence, whole, evaluations, contexts, self._form, known=self._known)
            said, citations = found.text.strip(), found.citations
        left = self._with(answer, piece, removed=not said)
        at = len(left.pieces) - 1
        head = answer[piece.start : piece.begin]
        left = left.with_reworded({at: said.removeprefix(head)})
        if self._strips:
            left = left.without(())
            waits = piece.kind == "heading" or announces(said)
            # Check the chain's own words, because a sentence with a mark counts as reworded.
            self.held = replace(left, reworded={}).is_lost(at)
            if waits or self.held:
                self._left = left
                return "", []
        text = left.text
        if not text.startswith(self.text):  # text that has left would have to change
            self.held = True
            return "", []
        self._left = left
        gone, base = len(self.text), len(text) - len(said)
        self._grown(text)
        return text[gone:], [
            annotation(
                citation.model_copy(
                    update={"start": citation.start + base, "end": citation.end + base}
                )
            )
            for citation in citations
        ]

    def _with(self, answer: str, piece: Piece, removed: bool) -> Remainder:
        left = self._left
        gone = left.removed | {len(left.pieces)} if removed else left.removed
        return Remainder(answer, [*left.pieces, piece], gone, left.reworded)

    def _grown(self, text: str) -> None:
        self.text = text
        self.ends.append(len(text))
