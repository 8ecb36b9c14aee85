"""Compare similarities where the answers of reference models are not needed: right ones are known.

FEWL compares an answer with reference answers. Here the reference answers are right ones from the
data, which are not scored. So no chat model is asked, and only the similarity and the penalty make
a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np

from demur.errors import DemurError
from demur.evaluators import normalized_text
from demur.evaluators.fewl import terms
from demur.evaluators.fewl.terms import Premise, Texts
from demur.similarity import Similarity, resolve_similarity
from demur_research.bench import Bench, Column, Figure, Result, Row, Table
from demur_research.datasets.rows import LabelledRow
from demur_research.resampling import Floats, drawn_alone, figure, mean
from demur_research.tables.checkers import share_of_words
from demur_research.tables.fewl.orders import crude_entailment
from demur_research.tables.fewl.scoring import COSINE, chosen
from demur_research.tables.fewl.small import SMALL_ALONE, SMALL_ASKED, small
from demur_research.tables.fewl.truthfulqa import BEST

SETS = ("chale", "truthfulqa")
_WORDS = "words"
SIMILARITIES = (COSINE, SMALL_ALONE, SMALL_ASKED, _WORDS)
_REFERENCES, _WRONG, _NEIGHBORS = 3, 3, 2
"""The most reference answers and wrong answers of a question, and the number of its neighbours."""


@dataclass(frozen=True)
class Asked:
    """Hold a question with its answers."""

    question: str
    right: str
    """The right answer that is scored."""
    wrong: tuple[str, ...]
    references: tuple[str, ...]
    """Right answers that are not scored."""
    document: str
    """A text that holds the right answer; empty if the data have none."""


def _of_chale(row: LabelledRow) -> Asked:
    texts = {str(answer.name): answer.text for answer in row.answers}
    told = str(row.metadata.get("long_answer") or "")
    wrong = tuple(texts[name] for name in ("half_hallu", "hallu"))
    references = (told,) if told.strip() else ()
    return Asked(str(row.question), texts["non_hallu"], wrong, references, told)


def _of_truthfulqa(row: LabelledRow) -> Asked:
    best = next(answer.text for answer in row.answers if answer.name == BEST)
    same = normalized_text(best)
    right = [
        one.text
        for one in row.answers
        if one.hallucinated is False and normalized_text(one.text) != same
    ]
    wrong = [one.text for one in row.answers if one.hallucinated]
    return Asked(str(row.question), best, tuple(wrong[:_WRONG]), tuple(right[:_REFERENCES]), "")


def _of_halueval(row: LabelledRow) -> Asked:
    texts = {str(answer.name): answer.text for answer in row.answers}
    document = "\n".join(row.contexts)
    return Asked(str(row.question), texts["right"], (texts["hallucinated"],), (), document)


READ: Mapping[str, Callable[[LabelledRow], Asked]] = {
    "chale": _of_chale,
    "truthfulqa": _of_truthfulqa,
    "halueval-qa": _of_halueval,
}
"""Functions that read the questions of each data set."""

Scores: TypeAlias = "list[list[float] | None]"
"""For each question, the score of the right answer and then those of the wrong ones; None if the
similarity failed for one of them."""


def neighbors(bench: Bench, asked: Sequence[Asked]) -> list[list[int]]:
    """Return the places of the questions that are nearest to each."""
    embedded = np.asarray(bench.embedding.embed_documents([one.question for one in asked]))
    embedded = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
    alike = embedded @ embedded.T
    np.fill_diagonal(alike, -np.inf)
    count = min(_NEIGHBORS, len(asked) - 1)
    return [np.argsort(-row, kind="stable")[:count].tolist() for row in alike]


def _texts(
    asked: Sequence[Asked], near: Sequence[Sequence[int]], premise: Premise
) -> list[list[Texts]]:
    """Return for each question the texts that the scores of its answers are made of."""
    return [
        [
            Texts(
                answer,
                one.references,
                neighbors=tuple(asked[at].references for at in places),
                premise=premise,
            )
            for answer in (one.right, *one.wrong)
        ]
        for one, places in zip(asked, near, strict=True)
    ]


def similarity(bench: Bench, name: str) -> Callable[[str], Similarity]:
    """Return a function from a question to the similarity of its answers."""
    if name == SMALL_ASKED:
        return small
    if name == SMALL_ALONE:
        fixed = small()
    else:
        fixed = resolve_similarity(bench.embedding if name == COSINE else crude_entailment)
    return lambda question: fixed


def _scored(
    bench: Bench, name: str, premise: Premise, asked: Sequence[Asked], near: list[list[int]]
) -> tuple[Scores, Scores]:
    """Return the scores by a similarity, without the penalty and with it."""
    of = similarity(bench, name)
    every = _texts(asked, near, premise)

    def work(at: int, config: object) -> list[tuple[float, float]] | None:
        alike = of(asked[at].question)
        try:
            found = [texts.read(alike.scores(texts.pairs())) for texts in every[at]]
        except DemurError:  # the small judge cannot read a text
            return None
        return [(float(one.answer.mean()), terms.score(one, None).value) for one in found]

    done = [one.value for one in bench.each(f"{name}, {premise}", range(len(asked)), work)]
    plain, penalized = (
        [None if scores is None else [one[at] for one in scores] for scores in done]
        for at in range(2)
    )
    return plain, penalized


def _by_order(
    bench: Bench, name: str, asked: Sequence[Asked], near: list[list[int]]
) -> dict[str, tuple[Scores, Scores]]:
    """Return the scores by a similarity in each order, and the means of both orders."""
    if name == COSINE:  # which has no direction
        return {"": _scored(bench, name, "answer", asked, near)}
    found = {
        f", premise: {premise}": _scored(bench, name, premise, asked, near)
        for premise in get_args(Premise)
    }
    first, second = found.values()
    plain, penalized = (_means(*of) for of in zip(first, second, strict=True))
    return {**found, ", both orders": (plain, penalized)}


def _means(first: Scores, second: Scores) -> Scores:
    return [
        None if one is None or two is None else [(a + b) / 2 for a, b in zip(one, two, strict=True)]
        for one, two in zip(first, second, strict=True)
    ]


def _won(scores: Sequence[float]) -> float:
    """Return the share of wrong answers that score below the right one; a tie counts half."""
    right, *wrong = scores
    return float(np.mean([(right > one) + (right == one) / 2 for one in wrong]))


def _is_first(scores: Sequence[float]) -> float:
    right, *wrong = scores
    return float(right > max(wrong))


def row_of(name: str, scores: Scores, beside: Scores | None, times: Floats, floor: bool) -> Row:
    """Return the row of a similarity, with how much better it is than other scores."""

    def percent(values: Sequence[float | None]) -> Figure:
        kept = [at for at, value in enumerate(values) if value is not None]
        known = np.array([value for value in values if value is not None])
        value = 100 * float(known.mean()) if kept else None
        return figure(value, 100 * mean(known, times[:, kept]))

    wins = [None if one is None else _won(one) for one in scores]
    firsts = [None if one is None else _is_first(one) for one in scores]
    over = None
    if beside is not None:
        over = percent(
            [
                None if own is None or other is None else own - _won(other)
                for own, other in zip(wins, beside, strict=True)
            ]
        )
    failed = wins.count(None)
    figures = (percent(wins), percent(firsts), over)
    return Row(name, figures, len(wins) - failed, failed, floor=floor)


def floors(asked: Sequence[Asked]) -> dict[str, Scores]:
    """Return the scores of answers by trivial rules, by the names of the rules."""
    rules: dict[str, Callable[[str, str], float]] = {
        "the longest answer": lambda question, answer: len(answer),
        "the shortest answer": lambda question, answer: -len(answer),
        "words of the question": lambda question, answer: share_of_words(answer, question),
    }
    return {
        name: [[rule(one.question, text) for text in (one.right, *one.wrong)] for one in asked]
        for name, rule in rules.items()
    }


def _make(bench: Bench) -> Result:
    rows: list[Row] = []
    notes: list[str] = []
    for of in bench.names("sets", SETS):
        every = [READ[of](row) for row in chosen(bench, of)]
        asked = [one for one in every if one.references and one.wrong]
        if len(asked) < 2:
            raise ValueError(f"{of}: expected two questions with another right answer and a wrong")
        near = neighbors(bench, asked)
        times = drawn_alone(len(asked), bench.seed)
        beside: tuple[Scores, Scores] | None = None
        for name in bench.names("similarities", SIMILARITIES):
            found = _by_order(bench, name, asked, near)
            if name == COSINE:
                (beside,) = found.values()
            for order, both in found.items():
                for at, penalty in enumerate(("", ", penalty")):
                    other = None if beside is None or name == COSINE else beside[at]
                    title = f"{of}: {name}{order}{penalty}"
                    rows.append(row_of(title, both[at], other, times, floor=name == _WORDS))
        plain = None if beside is None else beside[0]
        rows += [
            row_of(f"{of}: {rule}", scores, plain, times, floor=True)
            for rule, scores in floors(asked).items()
        ]
        if len(asked) < len(every):
            notes.append(f"{of}: {len(every) - len(asked)} questions have no other right answer.")
    return Result(
        (
            Column("right above a wrong one, %"),
            Column("right above all wrong ones, %"),
            Column("above a wrong one: over cosine"),
        ),
        tuple(rows),
        (
            *notes,
            "The reference answers are right ones of the data that are not scored: CHALE's long "
            f"answer, and up to {_REFERENCES} right answers of TruthfulQA. All weigh alike.",
            f"The penalty is FEWL's, of the references of the {_NEIGHBORS} nearest questions among "
            "these. A wrong answer that scores the same counts half in the first column.",
            f'"{SMALL_ASKED}" has the question in front of both answers. "{_WORDS}" is the share '
            "of the hypothesis' words that the premise has. Both orders: the mean of their scores.",
        ),
    )


SIMILAR = (
    Table(
        "fewl-similarities",
        "demur",
        "How well each similarity to right answers ranks other right answers above wrong ones.",
        SETS,
        _make,
        options={
            "sets": f"some of {', '.join(SETS)}, with commas between [default: all]",
            "similarities": f"some of {', '.join(SIMILARITIES)}, with commas between "
            "[default: all]",
        },
    ),
)
