"""CHALE built anew: right, half wrong and wrong answers (FEWL, version 1, section C.2).

Every answer is a short answer and a sentence of explanation. The right one has the question's own;
the wrong one has both of another question, which is like the first; the half wrong one has exactly
one of the two of that other question. The released file differs in this: few of its half wrong
answers hold anything right.

What the section says is followed:

- A question needs a short and a long answer. Answers that are tables, lists or Markdown are left
  out.
- The first and the last sentence of the long answer are removed, the others may explain.
- The other question is drawn from those of the 20 nearest with a similarity of 0.2 to 0.8.
- The half wrong answer has either the wrong short answer or the wrong sentence, at random.

Where it says nothing, we decide:

- Similarity is the cosine of the questions' embeddings, and the bounds belong to the range.
- A long answer of one or two sentences keeps them all, as in the section's own examples.
- Tags of paragraphs are taken off, so that no answer is known by its markup.
- A question that is asked twice counts once.
- Another question does not fit if its short answer is a part of the question's own. Nor does a
  sentence of it fit that stands in the question's own long answer, or that makes a wrong answer
  which holds the right short answer. Else the mismatch might be right.
- The three answers share what they can: the half wrong one has the right one's sentence or the
  wrong one's, word for word, so that nothing but the mismatched part differs.
- There is one answer of each kind for a question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import BaseModel

from demur._text import sentences
from demur.evaluators import normalized_text
from demur_research.datasets.files import load, rows

Mismatch = Literal["short answer", "sentence"]
MISMATCHES: tuple[Mismatch, ...] = ("short answer", "sentence")

NEIGHBOURS = 20
SIMILAR = 0.2, 0.8
"""The least and the greatest similarity of two questions whose answers are mismatched."""

NO_ANSWER = "without a short or a long answer"
FORMATTED = "tables, lists or Markdown"
TWICE = "asked twice"
NONE_IN_RANGE = "no neighbour in the range"
NONE_FITS = "no fit neighbour"
LEFT_OUT = (NO_ANSWER, FORMATTED, TWICE, NONE_IN_RANGE, NONE_FITS)
"""Why questions are left out: the names of `Built.left_out`."""

Report = Callable[[str, int, int], None]
"""Is told what is done, how much of it, and of how much."""

_PARAGRAPH = re.compile(r"</?P\s*>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_MARKDOWN = re.compile(r"^\s*(\||#{1,6}\s|[-*+]\s|\d+[.)]\s|```)", re.MULTILINE)
_EMBEDDED_AT_ONCE = 512
_COMPARED_AT_ONCE = 256


class Source(BaseModel):
    """A question with the answers that its data set gives."""

    question: str
    short_answer: str
    long_answer: str


@dataclass(frozen=True)
class Triple:
    """A question with its right, half wrong and wrong answer."""

    source: Source
    right: str
    half: str
    wrong: str
    mismatch: Mismatch
    """What of the half wrong answer is of the other question."""
    neighbour: str
    """The other question."""
    similarity: float
    """Of the two questions, in [0.2, 0.8]."""


@dataclass(frozen=True)
class Built:
    """What came of a file of questions."""

    triples: tuple[Triple, ...]
    left_out: Mapping[str, int]
    """How many questions, by why."""
    fit: float
    """How many fit neighbours a question had on the mean, of those that had neighbours."""

    def as_published(self) -> dict[str, list[Any]]:
        """The form of the released file, with the mismatch and the other question beside it."""
        found: dict[str, list[Any]] = {
            "Question": [one.source.question for one in self.triples],
            "Short_ans": [one.source.short_answer for one in self.triples],
            "Long_ans": [one.source.long_answer for one in self.triples],
            "halu": [one.wrong for one in self.triples],
            "mid-halu": [one.half for one in self.triples],
            "non-halu": [one.right for one in self.triples],
        }
        return found | {
            "mismatch": [one.mismatch for one in self.triples],
            "neighbour": [one.neighbour for one in self.triples],
            "similarity": [one.similarity for one in self.triples],
        }


def read_sources(path: Path) -> list[Source]:
    """The questions in JSON lines, or in a JSON list, of question, short_answer and long_answer.

    Raises:
        ValueError: The file is not of this form; the message says where.
    """
    return rows(load(path), Source, str(path))


def build(
    sources: Sequence[Source],
    embedding: Embeddings,
    seed: int = 0,
    report: Report = lambda what, done, total: None,
) -> Built:
    """Build the answers. The same questions, vectors and seed give the same answers.

    Args:
        sources: The questions. The more there are, the more have a fit neighbour.
        embedding: Of the questions.
        seed: Of every choice.
        report: Is told how far it is.

    Raises:
        ValueError: No question is left.
    """
    left_out = Counter[str](dict.fromkeys(LEFT_OUT, 0))
    usable = list(_usable(sources, left_out))
    fit, triples = [], []
    for one, near in zip(usable, _nearest(usable, embedding, report), strict=True):
        candidates = [_Candidate(one, other, similarity) for other, similarity in near]
        fitting = [candidate for candidate in candidates if candidate.sentences]
        fit.append(len(fitting))
        if fitting:
            triples.append(_triple(one, fitting, Random(f"{seed} {one.source.question}")))
        else:
            left_out[NONE_FITS if candidates else NONE_IN_RANGE] += 1
    if not triples:
        why = ", ".join(f"{count} {name}" for name, count in left_out.items() if count)
        raise ValueError(f"no answers could be built of {len(sources)} questions: {why or 'none'}")
    return Built(tuple(triples), dict(left_out), float(np.mean(fit)))


@dataclass(frozen=True)
class _Usable:
    """A question whose answers can be taken apart."""

    source: Source
    sentences: tuple[str, ...]
    """Of the long answer."""

    @property
    def explaining(self) -> tuple[str, ...]:
        """The sentences without the first and the last, unless that leaves none."""
        return self.sentences[1:-1] or self.sentences

    @cached_property
    def plain_short(self) -> str:
        return normalized_text(self.source.short_answer)

    @cached_property
    def plain(self) -> dict[str, str]:
        """The sentences, each with its words alone."""
        return {sentence: normalized_text(sentence) for sentence in self.sentences}


@dataclass(frozen=True)
class _Candidate:
    """A question that is near another, and what of its answers may be mismatched."""

    asked: _Usable
    other: _Usable
    similarity: float

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Those that make a wrong answer for the question; none if the short answer does not."""
        own, wrong = self.asked.plain_short, self.other.plain_short
        if _holds(own, wrong):
            return ()
        known = set(self.asked.plain.values())
        return tuple(
            sentence
            for sentence in self.other.explaining
            if (plain := self.other.plain[sentence]) not in known
            and not _holds(f"{wrong} {plain}", own)
        )


def _holds(text: str, words: str) -> bool:
    return f" {words} " in f" {text} "


def _usable(sources: Sequence[Source], left_out: Counter[str]) -> Iterator[_Usable]:
    asked = set()
    for source in sources:
        paragraphs = _PARAGRAPH.split(source.long_answer)
        found = [
            " ".join(paragraph[start:end].split())
            for paragraph in paragraphs
            for start, end in sentences(paragraph)
        ]
        if not normalized_text(source.short_answer) or not found:
            left_out[NO_ANSWER] += 1
        elif any(map(_is_formatted, [source.short_answer, *paragraphs])):
            left_out[FORMATTED] += 1
        elif (question := normalized_text(source.question)) in asked:
            left_out[TWICE] += 1
        else:
            asked.add(question)
            yield _Usable(source, tuple(found))


def _is_formatted(text: str) -> bool:
    return bool(_TAG.search(text) or _MARKDOWN.search(text))


def _triple(one: _Usable, fitting: Sequence[_Candidate], random: Random) -> Triple:
    chosen = random.choice(fitting)
    own, other = one.source.short_answer, chosen.other.source.short_answer
    right, wrong = random.choice(one.explaining), random.choice(chosen.sentences)
    mismatch = random.choice(MISMATCHES)
    return Triple(
        one.source,
        _answer(own, right),
        _answer(other, right) if mismatch == "short answer" else _answer(own, wrong),
        _answer(other, wrong),
        mismatch,
        chosen.other.source.question,
        chosen.similarity,
    )


def _answer(short: str, sentence: str) -> str:
    return f"{short.strip().rstrip('. ')}. {sentence}"


def _nearest(
    usable: Sequence[_Usable], embedding: Embeddings, report: Report
) -> Iterator[list[tuple[_Usable, float]]]:
    """For each question those of its nearest that are neither too far nor too alike."""
    if not usable:
        return
    vectors = _vectors([one.source.question for one in usable], embedding, report)
    least, greatest = SIMILAR
    for start in range(0, len(usable), _COMPARED_AT_ONCE):
        table = vectors[start : start + _COMPARED_AT_ONCE] @ vectors.T
        for at, similarities in enumerate(table, start):
            similarities[at] = -np.inf
            yield [
                (usable[other], float(similarities[other]))
                for other in _first(similarities, min(NEIGHBOURS, len(usable) - 1))
                if least <= similarities[other] <= greatest
            ]
        report("comparing questions", start + len(table), len(usable))


def _first(similarities: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The places of the greatest, greatest first; of equal ones the first in the file."""
    if not count:
        return np.empty(0, np.intp)
    least = np.partition(similarities, -count)[-count]
    places = np.flatnonzero(similarities >= least)
    return places[np.argsort(-similarities[places], kind="stable")][:count]


def _vectors(
    questions: Sequence[str], embedding: Embeddings, report: Report
) -> NDArray[np.float32]:
    """Of length 1; one of zeros stays so, and is like nothing."""
    found: list[NDArray[np.float32]] = []
    for start in range(0, len(questions), _EMBEDDED_AT_ONCE):
        some = [*questions[start : start + _EMBEDDED_AT_ONCE]]
        found.append(np.asarray(embedding.embed_documents(some), dtype=np.float32))
        report("embedding questions", start + len(some), len(questions))
    vectors = np.concatenate(found)
    lengths: NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    scaled: NDArray[np.float32] = vectors / lengths
    return scaled
