"""Measure what the judges' probabilities mean, and when a cascade of both judges is worth it.

A probability means what it says if, of the claims that have it, that share is supported. The
expected calibration error (ECE) is the mean distance between the two, over ranges of the
probability (Guo et al. 2017, "On Calibration of Modern Neural Networks", sections 2 and 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from demur import Cascade, Evaluation
from demur.local import SMALL
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost, place
from demur_research.resampling import (
    Floats,
    balanced_accuracy,
    drawn,
    figure,
    grouped_share,
    share,
)
from demur_research.tables.checkers import sample
from demur_research.tables.claims import Claimed, Judged, judged
from demur_research.tables.judges import (
    AT_BEST,
    JUDGES,
    MEAN,
    Judge,
    errors,
    mean_of,
    of_macro,
    over_sets,
    overlap_at_best,
    with_scores,
    with_verdicts,
)

_DATA = "aggrefact"
_BINS = 5
_LEAST = 1e-6
"""The distance from 0 and 1 that a probability keeps, so that its odds are finite."""

# --- What a probability means ---------------------------------------------------------------------


def log_odds(probabilities: Sequence[float]) -> Floats:
    """Return the logarithms of the odds of probabilities in [0, 1]."""
    inside = np.clip(np.asarray(probabilities, np.float64), _LEAST, 1 - _LEAST)
    odds: Floats = np.log(inside / (1 - inside))
    return odds


def _likely(odds: Floats) -> Floats:
    likely: Floats = 1 / (1 + np.exp(-odds))
    return likely


def fitted(features: Floats, supported: Sequence[bool]) -> Floats:
    """Return the weights of a logistic regression, of the shape (features,), by Newton's method.

    Args:
        features: The features of each claim, of the shape (claims, features).
        supported: Whether each claim is supported.
    """
    weights = np.zeros(features.shape[1])
    held = np.asarray(supported, np.float64)
    for _ in range(50):
        likely = _likely(features @ weights)
        slope = features.T @ (held - likely)
        curve = (features * (likely * (1 - likely))[:, None]).T @ features
        weights = weights + np.linalg.solve(curve + 1e-9 * np.eye(len(weights)), slope)
    return weights


def calibration_error(
    probabilities: Sequence[float], supported: Sequence[bool], times: Floats | None = None
) -> Floats:
    """Return the expected calibration error of each draw, in [0, 1].

    Args:
        probabilities: The probability of each claim.
        supported: Whether each claim is supported.
        times: How often each claim is in each draw; None: one draw that has each claim once.
    """
    likely = np.asarray(probabilities, np.float64)
    beyond = np.asarray(supported, np.float64) - likely
    weights = np.ones((1, len(likely))) if times is None else times
    of_bins = np.minimum((likely * _BINS).astype(int), _BINS - 1)
    distances = [np.abs(weights[:, of_bins == at] @ beyond[of_bins == at]) for at in range(_BINS)]
    errors: Floats = np.sum(distances, axis=0) / weights.sum(axis=1)
    return errors


def _first_half(claim: Claimed, seed: int) -> bool:
    return place(seed, f"half of {claim.group}")[0] % 2 == 0


def _forms(
    known: Sequence[tuple[Claimed, float]], seed: int
) -> dict[str, list[tuple[Claimed, float]]]:
    """Return the claims of the second half with each form of their probability, by its name.

    The forms are the judge's own, and two that are fitted on the first half.
    """
    first = [one for one in known if _first_half(one[0], seed)]
    second = [one for one in known if not _first_half(one[0], seed)]
    odds, others = (log_odds([number for _, number in half]) for half in (first, second))
    held = [claim.supported for claim, _ in first]
    (slope,) = fitted(odds[:, None], held)
    steep, shift = fitted(np.stack([odds, np.ones_like(odds)], axis=1), held)
    changed = {
        f"temperature {1 / slope:.2f}": _likely(others * slope),
        f"temperature {1 / steep:.2f}, shift {shift:+.2f}": _likely(others * steep + shift),
    }
    claims = [claim for claim, _ in second]
    return {"": second} | {
        name: [*zip(claims, likely.tolist(), strict=True)] for name, likely in changed.items()
    }


def _row(name: str, of: Sequence[tuple[Claimed, float]], seed: int, undetermined: int) -> Row:
    numbers = [number for _, number in of]
    kinds = [claim.supported for claim, _ in of]
    groups = [claim.group for claim, _ in of]
    times = drawn(groups, seed)
    return Row(
        name,
        (
            Figure(100 * float(np.mean(numbers))),
            share(kinds, groups),
            figure(
                100 * calibration_error(numbers, kinds)[0],
                100 * calibration_error(numbers, kinds, times),
            ),
        ),
        items=len(of),
        undetermined=undetermined,
    )


def _bins(name: str, of: Sequence[tuple[Claimed, float]]) -> Iterable[Row]:
    """Yield the rows of a reliability diagram: a range of the probability each."""
    for at in range(_BINS):
        inside = [one for one in of if min(int(one[1] * _BINS), _BINS - 1) == at]
        if inside:
            held = grouped_share((one.supported, one.group) for one, _ in inside)
            likely = Figure(100 * float(np.mean([number for _, number in inside])))
            title = f"{name}, from {100 * at // _BINS} to {100 * (at + 1) // _BINS} %"
            yield Row(title, (likely, held, None), items=len(inside))


def _measured(bench: Bench, names: Sequence[str]) -> dict[str, dict[str, list[Done[Judged]]]]:
    """Return what each judge says, and their mean if there are both, by judge and by set.

    The scores are the judges' own probabilities, whatever strings a claim lacks.
    """
    judges = {name: Judge(bench, name) for name in names}
    found: dict[str, dict[str, list[Done[Judged]]]] = {name: {} for name in judges}
    for of, chosen in of_macro(bench).items():
        for name, judge in judges.items():
            texts = [sample(one.alone, one.contexts) for one in chosen]
            done = bench.judged(f"{of}, {name}", judge.evaluator, texts)
            found[name][of] = [
                Done(Judged(claim, one.value.claims[0].support, one.value.passed), one.spent)
                for claim, one in zip(chosen, done, strict=True)
            ]
        if len(judges) > 1:
            both = {name: found[name][of] for name in judges}
            found.setdefault(MEAN, {})[of] = mean_of(both)
    return found


def _confidence(bench: Bench) -> Result:
    rows: list[Row] = []
    for name, sets in _measured(bench, bench.names("judges", JUDGES)).items():
        every = [one for of in sets.values() for one in of]
        known = with_scores(every)
        for form, of in _forms(known, bench.seed).items():
            title = f"{name}, {form}" if form else name
            rows.append(_row(title, of, bench.seed, len(every) - len(known)))
            rows += [] if form else _bins(name, of)
    return Result(
        (Column("mean probability, %"), Column("supported, %"), Column("ECE, points")),
        tuple(rows),
        (
            "A half of the documents is left out: a temperature, and a temperature with a shift of "
            "the log-odds, were fitted on their claims.",
            f"ECE: the mean distance between the probability and the share that is supported, over "
            f"{_BINS} ranges of the probability. Chance alone keeps it above 0.",
            "All claims have the same weight. Those with the same documents are drawn together.",
        ),
    )


CONFIDENCE = Table(
    "judges-confidence",
    "demur",
    "Whether the judges' probabilities mean what they say, and whether a temperature helps.",
    (_DATA,),
    _confidence,
    options={"judges": f"some of {', '.join(JUDGES)}, with commas between [default: all]"},
)

# --- A cascade of both ----------------------------------------------------------------------------

_CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def _cascade(bench: Bench) -> Result:
    judges = {name: Judge(bench, name) for name in JUDGES}
    stages = [judges[name].evaluator for name in (SMALL, "local")]
    ways = {
        f"cascade, min_confidence={least}": Cascade(stages, min_confidence=least)
        for least in _CONFIDENCES
    }
    found: dict[str, dict[str, list[Done[Judged]]]] = {}
    first: dict[str, list[bool]] = {}
    sets = of_macro(bench)
    for of, chosen in sets.items():
        for name, judge in judges.items():
            found.setdefault(name, {})[of] = bench.each(f"{of}, {name}", chosen, judge)
        texts = [sample(one.alone, one.contexts) for one in chosen]
        for name, cascade in ways.items():
            done = bench.judged(f"{of}, {name}", cascade, texts)
            first.setdefault(name, []).extend(_by_first(one.value) for one in done)
            said = judged(chosen, [one.value for one in done])
            found.setdefault(name, {})[of] = [
                Done(one, of_it.spent) for one, of_it in zip(said, done, strict=True)
            ]
    rows = []
    for name, of_sets in found.items():
        every = [one for of_set in of_sets.values() for one in of_set]
        passed = {of: with_verdicts(of_set) for of, of_set in of_sets.items()}
        known = sum(map(len, passed.values()))
        rows.append(
            Row(
                name,
                (
                    over_sets(balanced_accuracy, passed, bench.seed, 100),
                    *errors(passed, bench.seed),
                    share(first[name]) if name in first else None,
                ),
                items=known,
                undetermined=len(every) - known,
                spent=mean_cost(every),
            )
        )
    words = overlap_at_best(sets)
    figures = (
        over_sets(balanced_accuracy, words, bench.seed, 100),
        *errors(words, bench.seed),
        None,
    )
    rows.append(Row(AT_BEST, figures, items=sum(map(len, words.values())), floor=True))
    return Result(
        (
            Column("balanced accuracy, %"),
            Column("wrong claims that pass, %"),
            Column("right claims that fail, %"),
            Column("decided by the first stage, %"),
        ),
        tuple(rows),
        (
            f"The figures are means over the sets {', '.join(next(iter(found.values())))}.",
            'The calls and seconds are those of "local"; "small" makes no calls.',
        ),
    )


def _by_first(found: Evaluation) -> bool:
    stages = found.details.get("stages")
    return isinstance(stages, list) and len(stages) == 1


CASCADE = Table(
    "judges-cascade",
    "demur",
    "What a cascade of the small judge and the local model saves, and what it costs.",
    (_DATA,),
    _cascade,
)

TABLES = (CONFIDENCE, CASCADE)
