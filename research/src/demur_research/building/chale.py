"""Build data sets like CHALE: right, half wrong and wrong answers (FEWL, version 1, section C.2).

Every answer is a short answer and a sentence of explanation. The right answer has the question's
own two parts. The wrong answer has both parts from another question, which is similar to the first.
The half wrong answer has exactly one part from that other question. In the released file, by
contrast, few of the half wrong answers hold anything right.

The builder does what the section says:

- A question needs a short and a long answer. Answers that are tables, lists or Markdown are left
  out.
- The first and the last sentence of the long answer are removed. The others may explain.
- The other question is drawn from those of the 20 nearest questions that have a similarity of 0.2
  to 0.8.
- The half wrong answer has either the wrong short answer or the wrong sentence, at random.

The section leaves these points open, so they are decided here:

- Similarity is the cosine of the questions' embeddings, and the range includes its bounds.
- A long answer of one or two sentences keeps them all, as in the section's own examples.
- Paragraph tags are removed, so that markup does not give an answer away.
- A question that is asked twice counts once.
- Another question does not fit if its short answer is a part of the question's own. A sentence of
  it does not fit if it is also in the question's own long answer, or if it makes a wrong answer
  that holds the right short answer. Otherwise the mismatch might be right.
- The three answers share what they can: the half wrong answer has the sentence of the right or of
  the wrong answer, word for word. So nothing but the mismatched part differs.
- There is one answer of each kind for a question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from demur_research.bench import Report
from demur_research.datasets.chale import TAG
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
"""The reasons for leaving out questions: the keys of `Built.left_out`."""

_PARAGRAPH = re.compile(r"</?P\s*>", re.IGNORECASE)
_MARKDOWN = re.compile(r"^\s*(\||#{1,6}\s|[-*+]\s|\d+[.)]\s|```)", re.MULTILINE)
_EMBEDDED_AT_ONCE = 512
_COMPARED_AT_ONCE = 256


class Source(BaseModel):
    """Hold a question with the short and the long answer that its data set gives."""

    question: str
    short_answer: str
    long_answer: str


@dataclass(frozen=True)
class Triple:
    """Hold a question with its right, half wrong and wrong answer."""

    source: Source
    right: str
    half: str
    wrong: str
    mismatch: Mismatch
    """The part of the half wrong answer that comes from the other question."""
    neighbour: str
    """The other question."""
    similarity: float
    """The similarity of the two questions, in [0.2, 0.8]."""


@dataclass(frozen=True)
class Built:
    """Hold the answers that were built from a file of questions."""

    triples: tuple[Triple, ...]
    left_out: Mapping[str, int]
    """The number of questions that were left out, by reason."""
    fit: float
    """The mean number of fitting neighbours of a question, over all questions with usable
    answers."""

    def as_published(self) -> dict[str, list[Any]]:
        """Return the released file's form, with the mismatch and the other question added."""
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
    """Return the questions of a file.

    The file has JSON lines, or a JSON list, of question, short_answer and long_answer.

    Raises:
        ValueError: The file does not have this form. The message says where.
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
        sources: The questions. The more there are, the more of them have a fitting neighbour.
        embedding: The model that embeds the questions.
        seed: The seed of every choice.
        report: Hears how far the work is.

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
        raise ValueError(
            f"no answers could be built of {len(sources)} questions: {why or 'none'}. Give more "
            "questions, whose answers are plain sentences"
        )
    return Built(tuple(triples), dict(left_out), float(np.mean(fit)))


@dataclass(frozen=True)
class _Usable:
    """Hold a question whose answers can be split into their parts."""

    source: Source
    sentences: tuple[str, ...]
    """The sentences of the long answer."""

    @property
    def explaining(self) -> tuple[str, ...]:
        """Return the sentences without the first and the last, unless that leaves none."""
        return self.sentences[1:-1] or self.sentences

    @cached_property
    def plain_short(self) -> str:
        return normalized_text(self.source.short_answer)

    @cached_property
    def plain(self) -> dict[str, str]:
        """Return the normalized text of each sentence."""
        return {sentence: normalized_text(sentence) for sentence in self.sentences}


@dataclass(frozen=True)
class _Candidate:
    """Hold a question near another one, and find which of its sentences may be mismatched."""

    asked: _Usable
    other: _Usable
    similarity: float

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Return the sentences that make a wrong answer for the question.

        There is none if the short answer makes no wrong answer.
        """
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
    return bool(TAG.search(text) or _MARKDOWN.search(text))


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
    """Yield for each question its nearest neighbours with a similarity in the range."""
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
    """Return the places of the greatest values, greatest first; equal values stay in file order."""
    if not count:
        return np.empty(0, np.intp)
    least = np.partition(similarities, -count)[-count]
    places = np.flatnonzero(similarities >= least)
    return places[np.argsort(-similarities[places], kind="stable")][:count]


def _vectors(
    questions: Sequence[str], embedding: Embeddings, report: Report
) -> NDArray[np.float32]:
    """Return the questions' vectors at length 1; a vector of zeros stays and is like nothing."""
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
