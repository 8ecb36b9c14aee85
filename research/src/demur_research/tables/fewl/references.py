"""Compare reference answers: of one model or of several that are unlike, with a document or not.

FEWL's references are meant to be different models. With one model, they differ by sampling alone.
Here each model gives one answer, alone and, if the data have a document, once more with that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from demur.errors import DemurError
from demur.evaluators.fewl import formula
from demur.evaluators.fewl.prompts import ANSWER
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.runtime import Outcome, ask_all, drive
from demur.similarity import Pair, Similarity
from demur_research.bench import Bench, Column, Result, Row, Table
from demur_research.resampling import Floats, drawn_alone
from demur_research.tables.fewl.asking import replied
from demur_research.tables.fewl.scoring import COSINE, chosen
from demur_research.tables.fewl.similarities import (
    READ,
    SIMILARITIES,
    Asked,
    Scores,
    floors,
    neighbors,
    row_of,
    similarity,
)
from demur_research.tables.fewl.small import SMALL_ASKED

_TOKENS, _LEAST_PAIRS = 48, 3
"""The most tokens of an answer, and the fewest pairs that weigh references, as in `demur.FEWL`."""
_FROM_DOCUMENT = replace(
    ANSWER,
    system=f"The document may hold the answer. {ANSWER.system}",
    fields=("document", "question"),
)
_ALIKE, _BY_LABELS, _BY_PAIRS = "alike", "by labels", "by pairs"


@dataclass(frozen=True)
class _Reference:
    """Describe who gives a reference answer."""

    model: str
    documented: bool

    def __str__(self) -> str:
        return f"{self.model} with the document" if self.documented else self.model


@dataclass(frozen=True)
class _Alike:
    """Hold how alike a reference's answer is to the answers to be scored, and what it knows."""

    answers: Floats
    """Sim(y, h(x)), of shape (answers,)."""
    neighbors: Floats
    """Sim(y, h(x_k)), of shape (answers, neighbours)."""
    expertise: Mapping[str, float]
    """r, by the way in which it was found."""


def _reply(
    model: BaseChatModel, documented: bool, asked: Asked, config: RunnableConfig
) -> Outcome[str]:
    if documented:
        messages = _FROM_DOCUMENT.messages(document=asked.document, question=asked.question)
    else:
        messages = ANSWER.messages(question=asked.question)
    outcome = replied(model, messages, "reference", _TOKENS, config)
    if outcome.error is not None:
        return Outcome(error=outcome.error)
    text = outcome.value.text.strip()
    return Outcome(text) if text else Outcome(error="the model answered nothing")


def _pairs(
    asks: ReferenceModels, asked: Asked, config: RunnableConfig
) -> tuple[tuple[str, str], ...]:
    """Return pairs of wrong and corrected answers; none if there are too few to weigh by."""
    (outcome,), _ = drive(ask_all([asks.pairs_call(asked.question)]), config, None)
    usable = () if outcome.error is not None else asks.pairs(outcome).usable
    return usable if len(usable) >= _LEAST_PAIRS else ()


def _scores(alike: Similarity, pairs: Sequence[Pair]) -> list[float]:
    """Return the mean similarity of each pair in both orders."""
    both = list(dict.fromkeys([*pairs, *((two, one) for one, two in pairs)]))
    found = dict(zip(both, alike.scores(both).tolist(), strict=True))
    return [(found[one, two] + found[two, one]) / 2 for one, two in pairs]


def _held(
    alike: Similarity,
    answers: Sequence[str],
    reply: str,
    of_neighbors: Sequence[str],
    sides: Mapping[str, tuple[Sequence[str], Sequence[str]]],
) -> _Alike | None:
    """Hold a reply against texts; None if the similarity cannot read one of them."""
    pairs = [
        *((answer, text) for answer in answers for text in (reply, *of_neighbors)),
        *((reply, text) for both in sides.values() for side in both for text in side),
    ]
    try:
        found = iter(_scores(alike, pairs))
    except DemurError:  # the small judge cannot read a text
        return None
    table = np.array([[next(found) for _ in (reply, *of_neighbors)] for _ in answers])
    expertise = {}
    for name, both in sides.items():
        right, wrong = ([[next(found) for _ in side]] for side in both)
        expertise[name] = float(formula.expertise(right, wrong)[0])
    return _Alike(table[:, 0], table[:, 1:], expertise)


def _scored(group: Sequence[_Alike | None], weights: str, penalty: bool) -> list[float] | None:
    """Return the scores of a question's answers by some references (equation 4)."""
    known = [one for one in group if one is not None]
    if len(known) < len(group):
        return None
    # Without pairs, all references weigh alike.
    skill = [one.expertise.get(weights, 0.0) for one in known]
    lazy = [formula.laziness(one.neighbors[:, None])[:, 0] for one in known] if penalty else None
    scores = formula.fewl(
        np.stack([one.answers for one in known], axis=-1),
        formula.weights(skill, normalization="mean_one"),
        None if lazy is None else np.stack(lazy, axis=-1),
    )
    return [float(score) for score in scores]


def _groups(references: Sequence[_Reference]) -> dict[str, tuple[int, ...]]:
    """Return the references that score together, by what they are called."""
    groups: dict[str, tuple[int, ...]] = {str(one): (at,) for at, one in enumerate(references)}
    for name, documented in (("all models", False), ("all models with the document", True)):
        of = tuple(at for at, one in enumerate(references) if one.documented is documented)
        if len(of) > 1:
            groups[name] = of
    if any(one.documented for one in references):
        groups["all models, with and without the document"] = tuple(range(len(references)))
    return groups


def _rows(
    bench: Bench,
    of: str,
    asked: Sequence[Asked],
    references: Sequence[_Reference],
    replies: Sequence[Sequence[str]],
    pairs: Sequence[tuple[tuple[str, str], ...]] | None,
) -> list[Row]:
    """Return the rows of a data set; `replies` has a row of texts for each reference."""
    near, times = neighbors(bench, asked), drawn_alone(len(asked), bench.seed)
    ways = [_ALIKE, _BY_LABELS] + ([_BY_PAIRS] if pairs is not None else [])
    rows = []

    def sides(at: int) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        found: dict[str, tuple[Sequence[str], Sequence[str]]] = {
            _BY_LABELS: ((asked[at].right,), asked[at].wrong)
        }
        if pairs is not None and pairs[at]:
            wrong, corrected = zip(*pairs[at], strict=True)
            found[_BY_PAIRS] = corrected, wrong
        return found

    for name in bench.names("similarities", SIMILARITIES, (COSINE, SMALL_ASKED)):
        of_question = similarity(bench, name)

        def work(
            at: int, config: object, of_question: Callable[[str], Similarity] = of_question
        ) -> list[_Alike | None]:
            one = asked[at]
            alike, answers = of_question(one.question), (one.right, *one.wrong)
            return [
                _held(alike, answers, said[at], [said[other] for other in near[at]], sides(at))
                for said in replies
            ]

        held = [one.value for one in bench.each(f"{of}, {name}", range(len(asked)), work)]
        first: dict[bool, Scores] = {}
        for group, places in _groups(references).items():
            for way in ways if len(places) > 1 else [""]:
                for penalty in (False,) if way == _BY_LABELS else (False, True):
                    scores = [
                        _scored([one[place] for place in places], way, penalty) for one in held
                    ]
                    beside = first.setdefault(penalty, scores)
                    title = f"{of}: {group}, {name}" + (f", weighed {way}" if way else "")
                    rows.append(
                        row_of(
                            title + (", penalty" if penalty else ""),
                            scores,
                            None if beside is scores else beside,
                            times,
                            floor=False,
                        )
                    )
    rows += [
        row_of(f"{of}: {rule}", scores, None, times, floor=True)
        for rule, scores in floors(asked).items()
    ]
    return rows


def _make(bench: Bench) -> Result:
    names = list(dict.fromkeys(bench.options.get("models", bench.model_name).split(",")))
    models = {name: bench.model_of(name) for name in names}
    generator = models[names[0]]
    rows: list[Row] = []
    notes: list[str] = []
    for of in bench.names("sets", READ):
        every = [READ[of](row) for row in chosen(bench, of)]
        documented = (False, True) if all(one.document for one in every) else (False,)
        references = [_Reference(name, with_) for with_ in documented for name in names]
        said = [
            [
                one.value
                for one in bench.each(
                    f"{of}, answers of {reference}",
                    every,
                    partial(_reply, models[reference.model], reference.documented),
                )
            ]
            for reference in references
        ]
        kept = [at for at in range(len(every)) if not any(one[at].error for one in said)]
        if len(kept) < 2:
            raise ValueError(f"{of}: expected two questions that every model answers")
        asked = [every[at] for at in kept]
        pairs = None
        if "wrong" in bench.options:
            asks = ReferenceModels((generator,), generator, None, bench.number("wrong", 25))
            found = bench.each(f"{of}, pairs", asked, partial(_pairs, asks))
            pairs = [one.value for one in found]
            notes.append(
                f"{of}: {sum(map(bool, pairs))} of {len(pairs)} questions have {_LEAST_PAIRS} "
                f"usable pairs of wrong and corrected answers, by {names[0]}. With fewer, all "
                "references weigh alike."
            )
        replies = [[one[at].value for at in kept] for one in said]
        rows += _rows(bench, of, asked, references, replies, pairs)
        if len(kept) < len(every):
            notes.append(f"{of}: {len(every) - len(kept)} questions have no answer of some model.")
    return Result(
        (
            Column("right above a wrong one, %"),
            Column("right above all wrong ones, %"),
            Column("above a wrong one: over the first row"),
        ),
        tuple(rows),
        (
            *notes,
            "Each model gives one answer. The similarity is the mean of both orders, and the score "
            "is FEWL's (equation 4, weights of mean one). The last column compares with the first "
            "model alone, by the same similarity, with or without the penalty.",
            "Weighed by labels: by how much nearer a reference is to the right answer than to the "
            "wrong ones that are scored. An estimate without labels is hardly better than that.",
            "The document is CHALE's long answer, from which its right answers are cut, and "
            "HaluEval's knowledge.",
        ),
    )


UNLIKE = (
    Table(
        "fewl-references",
        "demur",
        "What FEWL gains by references that are unlike, and by a document at hand.",
        tuple(READ),
        _make,
        options={
            "sets": f"some of {', '.join(READ)}, with commas between [default: all]",
            "models": "the models that answer, named as for --model, with commas between "
            "[default: --model]",
            "wrong": "the number of pairs of wrong and corrected answers that the first model "
            "writes, to weigh by [default: none are asked for]",
            "similarities": f"some of {', '.join(SIMILARITIES)}, with commas between "
            f"[default: {COSINE},{SMALL_ASKED}]",
        },
    ),
)
