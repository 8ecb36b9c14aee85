"""Compare checkers' labels with people's labels.

The publisher gives no questions and no references. If you have them, as the publisher's script
gathers them from Natural Questions, MS MARCO and Dolly, name their folder (`references`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from demur import Claim, ClaimLabel
from demur._text import words
from demur.schema import NLI_LABELS
from demur_research.bench import Bench, Column, Result, Row, Table, mean_cost
from demur_research.datasets.files import load
from demur_research.datasets.files import rows as rows_of
from demur_research.resampling import Floats, drawn, figure, mean
from demur_research.tables.checkers import CHECKERS, checker, sample
from demur_research.tables.refchecker.responses import Response, chosen, response

Pair = tuple[str, ClaimLabel, ClaimLabel]
"""The group of a claim, the label that people gave it, and another label."""


class _Referenced(BaseModel):
    id: str = Field(coerce_numbers_to_str=True)
    question: str
    context: list[str]


def references(folder: Path, sources: Mapping[str, str]) -> dict[str, _Referenced]:
    """Return the questions with their references, by source and id.

    Args:
        folder: The folder with `zero_context/nq.json` and its like, as the publisher's script
            writes them.
        sources: The setting of each source.

    Raises:
        ValueError: None of the files exists, or one has another form.
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
    """Return pairs of people's labels of the same claim about the same question, for two models."""
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
    """Return the row of pairs: how often the labels are the people's, and two F1 scores.

    One F1 is of the label Entailment, the other of the other labels together.
    """
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
    """Return the people's label of each claim with another label of it, where there is one."""
    return [
        (one.group, claim.label, label)
        for one, found in zip(responses, labels, strict=True)
        for claim, label in zip(one.claims, found, strict=False)  # no label if the check failed
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
    notes = [
        "The row of people is of the same claim about the same question, labelled for two models."
    ]
    known: dict[str, _Referenced] = {}
    if "references" in bench.options:
        sources = {one.source: one.setting for one in responses}
        known = references(Path(bench.options["references"]), sources)
        responses = [one for one in responses if one.group in known]
        notes.append(f"{len(known)} references are of {len(responses)} responses with claims.")
    else:
        notes.append(
            "No checker was asked, since the publisher gives no references. (Its three examples "
            "have them, and no labels.) -O references=FOLDER names the folder that its script "
            "fills."
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
    for label in NLI_LABELS:
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
        "references": "a folder with some of zero_context/nq.json, noisy_context/msmarco.json and "
        "accurate_context/dolly.json [default: none, so that no checker is asked]",
        "checkers": f"some of {', '.join(CHECKERS)}, with commas between [default: all]",
    },
)
