"""The text of an answer that leaves sentence by sentence, with marks, and without what fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document

from demur.edits import Citation, Form, Place, Remainder, annotation, cited, place_at
from demur.evaluators import Piece, piece_at
from demur.schema import Evaluation

_WHOLE = re.compile(r"[ \t]*\||.*(?:```|~~~)", re.DOTALL)
"""What tables and blocks of code begin with: they stay or go as a whole."""
_GOES_ON = re.compile(
    r"(?:\]:|=)\s*$|\[\^|^[\W_]*(?:sources?|ref(?:erence)?s?|quellen?)\W*$", re.IGNORECASE
)
"""What a later sentence may make a citation of the chain's own of, or an address."""
_PAIRS = (("[", "]"), ("(", ")"), ("【", "】"), ("<", ">"))


def _is_open(sentence: str) -> bool:
    """Whether what is a citation or an address in a sentence may depend on a later one."""
    uneven = any(sentence.count(first) != sentence.count(last) for first, last in _PAIRS)
    return uneven or sentence.count("`") % 2 == 1 or _GOES_ON.search(sentence) is not None


class LeavingText:
    """What has left of an answer.

    Where sentences are taken out, one that goes on from one that is gone holds up what follows, as
    tables and code do: what becomes of them is known at the end. A heading, and what announces
    a list, leave with what stands under them.
    """

    def __init__(self, form: Form | None, strips: bool) -> None:
        """`form` is that of citations, if there are to be any."""
        self.text = ""
        self.ends: list[int] = [0]
        """How long the text was after each sentence."""
        self.held = False
        """Whether nothing more can leave before the end."""
        self._form = form
        self._strips = strips
        self._left = Remainder("", [])
        self._end = 0

    def skip(self, answer: str, span: tuple[int, int]) -> None:
        """A sentence does not leave."""
        self._left = self._with(answer, piece_at(answer, *span), removed=True)

    def leave(
        self,
        answer: str,
        span: tuple[int, int],
        evaluations: Sequence[Evaluation],
        contexts: Sequence[Document],
    ) -> tuple[str, list[dict[str, Any]]]:
        """A sentence leaves.

        Args:
            answer: As far as it is there.
            span: Of the sentence; it follows the one before.
            evaluations: Of the sentence by itself.
            contexts: What it was held against.

        Returns:
            What the text goes on with, and the citations in it as LangChain's content blocks have
            them. Empty where it is held up.
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
            found = cited(sentence, whole, evaluations, contexts, self._form)
            said, citations = found.text.strip(), found.citations
        left = self._with(answer, piece, removed=not said)
        at = len(left.pieces) - 1
        head = answer[piece.start : piece.begin]
        left = left.with_reworded({at: said.removeprefix(head)})
        if self._strips:
            left = left.without(())
            waits = piece.kind == "heading" or said.endswith((":", "："))
            # As the chain worded it: that it has a mark now is no reason to keep it.
            self.held = replace(left, reworded={}).is_lost(at)
            if waits or self.held:
                self._left = left
                return "", []
        text = left.text
        if not text.startswith(self.text):  # it can only be told as a whole
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
