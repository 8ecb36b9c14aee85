"""Rank seven models by the labels of a judge, and compare the ranking with the people's.

The publisher gives no references. If you have them, name their folder (`references`). Otherwise,
each claim is held against what the other models answered to its question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from demur import Claim, ClaimLabel, Evaluation
from demur.local import SMALL
from demur_research.bench import Bench, Column, Figure, Result, Row, Table, mean_cost
from demur_research.resampling import figure, pearson, spearman
from demur_research.spending import Spent
from demur_research.tables.checkers import GivenClaims, sample, share_of_words
from demur_research.tables.judges import ANY_JUDGE_OPTION, any_judge
from demur_research.tables.refchecker.checking import references
from demur_research.tables.refchecker.ranking import (
    FLOORS,
    Means,
    Standing,
    by_setting,
    share_of,
)
from demur_research.tables.refchecker.responses import Response, chosen, response

_RATES: Mapping[str, Callable[[Response], float]] = {
    "Entailment": share_of("entailment"),
    "Contradiction": share_of("contradiction"),
    "hallucinated": lambda one: float(
        any(claim.label is not ClaimLabel.ENTAILMENT for claim in one.claims)
    ),
}
"""What models are ranked by, as a number of each response in [0, 1]."""
_CORRELATIONS = {"Pearson": pearson, "Spearman": spearman}


def _given(bench: Bench, responses: Sequence[Response]) -> list[list[str]]:
    """Return the publisher's references of each response; an empty list if there are none."""
    sources = {one.source: one.setting for one in responses}
    known = references(Path(bench.options["references"]), sources)
    return [known[one.group].context if one.group in known else [] for one in responses]


def _of_others(responses: Sequence[Response]) -> list[list[str]]:
    """Return the other models' answers to the question of each response."""
    answers: dict[str, list[Response]] = defaultdict(list)
    for one in responses:
        answers[one.group].append(one)
    return [
        [other.text for other in answers[one.group] if other.model != one.model]
        for one in responses
    ]


def _labelled(one: Response, found: Evaluation) -> Response | None:
    """Return a response with the judge's labels, or None if one of its claims has no label."""
    labels = [claim.label for claim in found.claims]
    whole = len(labels) == len(one.claims) and None not in labels
    return replace(one, claims=found.claims) if whole else None


def _rates(setting: str, people: Standing, judge: Standing) -> list[Row]:
    """Return a row for each model, with its rates by people and by the judge."""
    means = [side.means(of) for of in _RATES.values() for side in (people, judge)]
    rows = [
        Row(
            f"{setting}: {name}",
            (
                *(figure(100 * values[at], 100 * draws[:, at]) for values, draws in means),
                *[None] * len(_CORRELATIONS),
            ),
            items=len(found),
        )
        for at, (name, found) in enumerate(people.responses.items())
        if found
    ]
    return sorted(rows, key=lambda row: -((row.figures[0] and row.figures[0].value) or 0))


def _correlated(first: Means, second: Means) -> tuple[Figure | None, ...]:
    """Return the figures of a row that compares two orders of the models."""
    found = (
        figure(float(by(first[0], second[0])), by(first[1], second[1]))
        for by in _CORRELATIONS.values()
    )
    return (*[None] * (2 * len(_RATES)), *found)


def _orders(
    setting: str, name: str, people: Standing, judge: Standing, overlaps: Mapping[str, float]
) -> list[Row]:
    """Return the rows that compare the people's order with the judge's and with trivial ones."""
    models = len(people.responses)
    rows = [
        Row(
            f"{setting}: {rate}, {name} and people",
            _correlated(judge.means(of), people.means(of)),
            items=models,
        )
        for rate, of in _RATES.items()
    ]
    entailed = people.means(_RATES["Entailment"])
    trivial = {**FLOORS, "words in the references": lambda one: overlaps[_key(one)]}
    rows += [
        Row(
            f"{setting}: {floor} and people's Entailment",
            _correlated(people.means(of), entailed),
            items=models,
            floor=True,
        )
        for floor, of in trivial.items()
    ]
    return rows


def _key(one: Response) -> str:
    return f"{one.group} {one.model}"


def _make(bench: Bench) -> Result:
    judge, name = any_judge(bench), bench.options.get("judge", SMALL)
    responses = chosen([*map(response, bench.read("refchecker"))], bench.limit, bench.seed)
    given = "references" in bench.options
    texts = _given(bench, responses) if given else _of_others(responses)
    asked = [(one, of) for one, of in zip(responses, texts, strict=True) if one.claims and of]
    # The other answers are read whole. Of references, as much is read as RefChecker reads.
    most = None if given else max((len(of) for _, of in asked), default=1)
    samples = [
        sample(
            one.text,
            of,
            claims=[Claim(text=claim.text, triplet=claim.triplet) for claim in one.claims],
        )
        for one, of in asked
    ]
    done = bench.judged(name, GivenClaims(model=judge, max_windows=most), samples)
    judged = [
        (one, labelled)
        for (one, _), found in zip(asked, done, strict=True)
        if (labelled := _labelled(one, found.value)) is not None
    ]
    if not judged:
        raise ValueError("no response has references and a label of the judge for each claim")
    models = [*dict.fromkeys(one.model for one, _ in judged)]
    overlaps = {_key(one): share_of_words(one.text, *of) for one, of in asked}
    people = by_setting([one for one, _ in judged])
    by_judge = by_setting([one for _, one in judged])
    rates: list[Row] = []
    orders: list[Row] = []
    for setting in people:
        first, second = (Standing(side[setting], models, bench.seed) for side in (people, by_judge))
        rates += _rates(setting, first, second)
        orders += _orders(setting, name, first, second, overlaps)
    return Result(
        (
            *(Column(f"{rate} by {side}, %") for rate in _RATES for side in ("people", name)),
            *(Column(by, 2) for by in _CORRELATIONS),
        ),
        (*rates, *orders),
        _notes(given, asked=len(asked), judged=len(judged), cost=mean_cost(done)),
    )


def _notes(given: bool, asked: int, judged: int, cost: Spent | None) -> tuple[str, ...]:
    references = (
        "The references are the publisher's."
        if given
        else "No references were given, so a claim is held against the other models' answers to "
        "its question. What several models make up alike counts as supported."
    )
    notes = [
        references,
        "Entailment and Contradiction are macro averages over the responses that state something. "
        "A response is hallucinated if the references do not support all of its claims.",
        "Intervals are of questions drawn with replacement, the same for all models, people and "
        "the judge. With seven models, a correlation can have few values.",
    ]
    if judged < asked:
        notes.append(f"{asked - judged} responses are left out, of which a claim has no label.")
    if cost is not None:
        notes.append(
            f"A response cost {cost.calls:.1f} calls and {cost.seconds:.1f} s on the mean."
        )
    return tuple(notes)


CORRELATION = Table(
    "refchecker-correlation",
    "RefChecker, ranking by automatic labels",
    "How well seven models are ranked by a judge's labels of the claims that people labelled.",
    ("refchecker",),
    _make,
    options={
        "judge": ANY_JUDGE_OPTION,
        "references": "a folder with some of zero_context/nq.json, noisy_context/msmarco.json and "
        "accurate_context/dolly.json [default: none, so that the other models' answers are the "
        "references]",
    },
)
