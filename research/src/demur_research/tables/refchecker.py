"""RefChecker's human annotations: seven models ranked, and checkers beside the people's labels.

The publisher gives no questions and no references. Whoever has them, as the publisher's script
gathers them from Natural Questions, MS MARCO and Dolly, names the folder (`references`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from demur import Claim, ClaimLabel, Evaluation
from demur._share import Share
from demur._text import words
from demur.evaluators.refchecker import Summary, summarize
from demur.evaluators.refchecker.aggregation import aggregate
from demur.schema import ABSTAIN
from demur_research.bench import Bench, Column, Figure, Result, Row, Table, mean_cost
from demur_research.datasets.files import load
from demur_research.datasets.files import rows as rows_of
from demur_research.datasets.rows import LabelledRow
from demur_research.ranking import kendall_tau
from demur_research.resampling import Floats, drawn, figure, mean
from demur_research.tables.checkers import CHECKERS, checker, sample

SETTINGS = ("zero_context", "noisy_context", "accurate_context")


@dataclass(frozen=True)
class Response:
    """What a model answered, with what people found of it."""

    group: str
    """Of the question: the same for all models."""
    setting: str
    source: str
    model: str
    text: str
    claims: tuple[Claim, ...]
    """With the people's labels; none of a response that states nothing."""

    @property
    def evaluation(self) -> Evaluation:
        """What RefChecker would find if its claims and labels were the people's."""
        if not self.claims:
            return Evaluation(name="people", label=ABSTAIN)
        found = aggregate([claim.label for claim in self.claims], "strict", 1)
        return Evaluation(
            name="people",
            score=found.score,
            label=found.label and found.label.value,
            passed=found.passed,
            claims=self.claims,
        )

    @cached_property
    def summary(self) -> Summary:
        """Of this response alone."""
        return summarize([self.evaluation])


def response(row: LabelledRow) -> Response:
    """The response of a row of the set."""
    told: Mapping[str, Any] = row.metadata
    claims = [
        Claim(text=" ".join(triplet), triplet=tuple(triplet), label=ClaimLabel(label))
        for triplet, label in zip(told["claims"], told["labels"], strict=True)
    ]
    setting, source, model = (told[name] for name in ("setting", "source", "model"))
    return Response(row.group, setting, source, model, row.answers[0].text, tuple(claims))


def chosen(responses: Sequence[Response], limit: int | None, seed: int) -> list[Response]:
    """The responses to so many questions of each setting, which the seed decides; None: to all."""

    def place(group: str) -> bytes:
        return hashlib.sha256(f"{seed}:{group}".encode()).digest()

    of_setting: dict[str, set[str]] = defaultdict(set)
    for one in responses:
        of_setting[one.setting].add(one.group)
    kept = {name: sorted(groups, key=place)[:limit] for name, groups in of_setting.items()}
    return [one for one in responses if one.group in kept[one.setting]]


# --- The ranking ----------------------------------------------------------------------------------

_EVERY = "all settings"
_FLOORS: dict[str, Callable[[Response], float]] = {
    "length of the responses": lambda one: len(one.text),
    "number of claims": lambda one: len(one.claims),
}
LABELS = ("entailment", "neutral", "contradiction")


Means = tuple[Floats, Floats]
"""The mean of each model's responses, and those of draws of the questions, (draws, models)."""


class Standing:
    """The models by their responses that state something, and the same in draws of questions."""

    def __init__(self, responses: Sequence[Response], models: Sequence[str], seed: int) -> None:
        stating = [one for one in responses if one.claims]
        self.responses = {name: [r for r in stating if r.model == name] for name in models}
        times = drawn([one.group for one in stating], seed)
        self._times = {
            name: times[:, [at for at, one in enumerate(stating) if one.model == name]]
            for name in models
        }

    def means(self, of: Callable[[Response], float]) -> Means:
        """The means of a number of each response; NaN of a model that always abstained."""
        every = {name: [of(one) for one in found] for name, found in self.responses.items()}
        values = [np.mean(found) if found else np.nan for found in every.values()]
        resampled = [mean(found, self._times[name]) for name, found in every.items()]
        return np.array(values), np.stack(resampled, axis=1)


def share_of(label: str) -> Callable[[Response], float]:
    """The share of a response's claims that people gave one of `LABELS`, in [0, 1]."""
    return lambda one: float(getattr(one.summary, label))


def models_ranked(setting: str, responses: Sequence[Response], standing: Standing) -> list[Row]:
    """The models by the macro average of the entailed share, the highest first."""
    summaries = {
        name: summarize(one.evaluation for one in responses if one.model == name)
        for name in standing.responses
    }
    draws = {label: standing.means(share_of(label))[1] for label in LABELS}
    every = [summary.entailment or 0 for summary in summaries.values()]
    rows = []
    for at, (name, summary) in enumerate(summaries.items()):
        own = summary.entailment
        rank = None if own is None else Figure(1 + sum(other > own for other in every))
        shares = [
            figure(None if own is None else 100 * getattr(summary, label), 100 * of[:, at])
            for label, of in draws.items()
        ]
        abstained = Figure.of_share(Share(summary.nothing_to_check, summary.answers))
        figures = (rank, *shares, abstained, None)
        rows.append(Row(f"{setting}: {name}", figures, items=summary.answers))
    rows.sort(key=lambda row: (row.figures[0] and row.figures[0].value) or len(rows) + 1)
    return rows


def agreement(first: Means, second: Means) -> Figure:
    """Kendall's tau of two orders of the models."""

    def tau(one: Floats, two: Floats) -> float:
        known = np.isfinite(one) & np.isfinite(two)
        found = kendall_tau(one[known], two[known])
        return np.nan if found is None else found

    draws = [tau(one, two) for one, two in zip(first[1], second[1], strict=True)]
    return figure(tau(first[0], second[0]), np.array(draws))


def _ranking(bench: Bench) -> Result:
    responses = chosen([*map(response, bench.read("refchecker"))], bench.limit, bench.seed)
    models = [*dict.fromkeys(one.model for one in responses)]
    of_setting = {name: [r for r in responses if r.setting == name] for name in SETTINGS}
    parts = {name: found for name, found in of_setting.items() if found} | {_EVERY: responses}
    standings = {name: Standing(found, models, bench.seed) for name, found in parts.items()}
    rows = [
        row for name, found in parts.items() for row in models_ranked(name, found, standings[name])
    ]

    def tau(name: str, value: Figure, floor: bool = False) -> Row:
        return Row(name, (*[None] * 5, value), items=len(models), floor=floor)

    orders = {name: one.means(share_of(LABELS[0])) for name, one in standings.items()}
    for one, two in combinations(parts, 2):
        if two != _EVERY:
            rows.append(tau(f"{one} against {two}", agreement(orders[one], orders[two])))
    for name, order in orders.items():
        for floor, of in _FLOORS.items():
            value = agreement(standings[name].means(of), order)
            rows.append(tau(f"{name}: {floor} against the labels", value, floor=True))
    return Result(
        (
            Column("rank", 0),
            Column("Entailment, %"),
            Column("Neutral, %"),
            Column("Contradiction, %"),
            Column("Abstain, %"),
            Column("Kendall's tau", 2),
        ),
        tuple(rows),
        (
            "macro averages of the people's labels over the responses that state something, by "
            "demur's summarize; ranked by Entailment",
            "intervals: questions drawn with replacement, the same for all models",
        ),
    )


RANKING = Table(
    "refchecker-ranking",
    "RefChecker, ranking of seven models",
    "Which models hallucinate least by the claims that people labelled, in each setting.",
    ("refchecker",),
    _ranking,
    asks=False,
)


# --- Checkers beside people -----------------------------------------------------------------------

Pair = tuple[str, ClaimLabel, ClaimLabel]
"""The group of a claim, its label by people, and another one."""


class _Referenced(BaseModel):
    id: str = Field(coerce_numbers_to_str=True)
    question: str
    context: list[str]


def references(folder: Path, sources: Mapping[str, str]) -> dict[str, _Referenced]:
    """By source and id, the questions with their references.

    Args:
        folder: With `zero_context/nq.json` and its like, as the publisher's script writes them.
        sources: The setting of each source.

    Raises:
        ValueError: None of the files is there, or one is of another form.
    """
    paths = {source: folder / setting / f"{source}.json" for source, setting in sources.items()}
    there = {source: path for source, path in paths.items() if path.is_file()}
    if not there:
        wanted = ", ".join(str(path) for path in paths.values())
        raise ValueError(f"references: expected one of {wanted}")
    return {
        f"{source}-{one.id}": one
        for source, path in there.items()
        for one in rows_of(load(path), _Referenced, str(path))
    }


def again(responses: Sequence[Response]) -> list[Pair]:
    """The same claim about the same question, labelled for two models."""
    found: dict[tuple[object, ...], list[tuple[str, ClaimLabel]]] = defaultdict(list)
    for one in responses:
        for claim in one.claims:
            assert claim.label is not None
            found[one.group, claim.triplet].append((one.model, claim.label))
    return [
        (str(group), first, second)
        for (group, _), labelled in found.items()
        for (model, first), (other, second) in combinations(labelled, 2)
        if model != other
    ]


def compared(name: str, pairs: Sequence[Pair], seed: int, **of_row: Any) -> Row:
    """How often labels are the people's, and the F1 of what is supported and of what is not."""
    times = drawn([group for group, _, _ in pairs], seed)
    same = [people is other for _, people, other in pairs]
    figures = [figure(100 * float(np.mean(same)) if pairs else None, 100 * mean(same, times))]
    for wanted in (True, False):
        sides = np.array(
            [[(label is ClaimLabel.ENTAILMENT) is wanted for label in of[1:]] for of in pairs]
        ).reshape(-1, 2)
        figures.append(figure(*_f1(sides, times)))
    return Row(name, tuple(figures), items=len(pairs), **of_row)


def beside(
    responses: Sequence[Response], labels: Sequence[Sequence[ClaimLabel | None]]
) -> list[Pair]:
    """The people's label of each claim beside another one, where there is one."""
    return [
        (one.group, claim.label, label)
        for one, found in zip(responses, labels, strict=True)
        for claim, label in zip(one.claims, found, strict=False)  # none, if it all failed
        if claim.label is not None and label is not None
    ]


def _f1(sides: NDArray[np.bool_], times: Floats) -> tuple[float, Floats]:
    both, named = sides.all(axis=1).astype(float), sides.sum(axis=1).astype(float)
    with np.errstate(invalid="ignore"):
        value = 200 * both.sum() / np.float64(named.sum())
        return float(value), 200 * (times @ both) / (times @ named)


def _overlapping(one: Response, texts: Sequence[str]) -> Iterator[ClaimLabel]:
    known = {word for text in texts for word, _, _ in words(text)}
    for claim in one.claims:
        inside = all(word in known for word, _, _ in words(claim.text))
        yield ClaimLabel.ENTAILMENT if inside else ClaimLabel.NEUTRAL


def _checkers(bench: Bench) -> Result:
    responses = [one for one in map(response, bench.read("refchecker")) if one.claims]
    rows = [compared("people, of the same claim again", again(responses), bench.seed)]
    notes = ["people: the same claim about the same question, labelled for two models"]
    known: dict[str, _Referenced] = {}
    if "references" in bench.options:
        sources = {one.source: one.setting for one in responses}
        known = references(Path(bench.options["references"]), sources)
        responses = [one for one in responses if one.group in known]
        notes.append(f"{len(known)} references, of {len(responses)} responses with claims")
    else:
        notes.append(
            "no checker was asked: the publisher gives no references (its three examples have "
            "them, and no labels); -O references=FOLDER names the folder that its script fills"
        )
    responses = chosen(responses, bench.limit, bench.seed)

    every = sum(len(one.claims) for one in responses)
    samples = [
        sample(
            one.text,
            known[one.group].context,
            known[one.group].question,
            claims=[Claim(text=claim.text, triplet=claim.triplet) for claim in one.claims],
        )
        for one in responses
        if known
    ]
    for name in bench.names("checkers", CHECKERS) if known else ():
        done = bench.judged(name, checker(name, bench.model), samples)
        pairs = beside(responses, [[claim.label for claim in one.value.claims] for one in done])
        lacking = every - len(pairs)
        cost = None if (spent := mean_cost(done)) is None else spent / (every / len(done))
        rows.append(compared(name, pairs, bench.seed, undetermined=lacking, spent=cost))
    for label in ClaimLabel:
        pairs = beside(responses, [[label] * len(one.claims) for one in responses])
        rows.append(compared(f"always {label.value}", pairs, bench.seed, floor=True))
    if known:
        overlaps = [[*_overlapping(one, known[one.group].context)] for one in responses]
        pairs = beside(responses, overlaps)
        rows.append(compared("every word in the reference", pairs, bench.seed, floor=True))
    return Result(
        (
            Column("the people's label, %"),
            Column("F1 of Entailment, %"),
            Column("F1 of the others, %"),
        ),
        tuple(rows),
        tuple(notes),
    )


CHECKER = Table(
    "refchecker-checker",
    "RefChecker, automatic checkers",
    "How often a checker gives a claim the label that people gave it.",
    ("refchecker",),
    _checkers,
    options={
        "references": "the folder with zero_context/nq.json, noisy_context/msmarco.json and "
        "accurate_context/dolly.json, as far as they are there (no checker is asked)",
        "checkers": f"of {', '.join(CHECKERS)}, apart by commas (all)",
    },
)

TABLES = (RANKING, CHECKER)
