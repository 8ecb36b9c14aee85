"""Measure demur's own judges on claims with labels, in each set of a file by itself.

Each claim is given and checked alone, as in `claims`. A claim's probability of Entailment is that
of the window that supports it most, since one window that reaches the limit lets the claim pass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from demur.local import SMALL
from demur.similarity import NAMED
from demur_research.bench import Bench, Column, Done, Figure, Result, Row, Table, mean_cost, place
from demur_research.datasets.rows import LabelledRow
from demur_research.resampling import (
    Floats,
    auroc,
    balanced_accuracy,
    drawn,
    figure,
    grouped_share,
    pass_rates,
)
from demur_research.spending import Spent, total
from demur_research.tables.checkers import (
    ADAPTER,
    FLOORS,
    GivenClaims,
    adapted,
    limits,
    sample,
    score,
    yes_no,
)
from demur_research.tables.claims import Claimed, Judged, claims, judged, overlap
from demur_research.texts.answers import let_through

JUDGES, LOGPROBS = (SMALL, "local"), "logprobs"
"""demur's own judges, and the name of the model of --model as a judge by log-probabilities."""
_NAMES = (*JUDGES, LOGPROBS, *NAMED)
_WEIGHTS, _LIMIT_OF_MEAN = {"local": 0.8, SMALL: 0.2}, 0.5
"""The weights of the judges' mean, as those who trained the judges chose them, and the limit that
both judges have."""
_OF_NAMES = (
    f"{', '.join(JUDGES)}, {LOGPROBS} (the model of --model by log-probabilities), or yes-or-no "
    f"judges: {', '.join(NAMED)}"
)
JUDGE_OPTION = f"{_OF_NAMES} [default: {SMALL}]"
"""What the option `judge` is, of tables about one judge."""
_LIMITS = (0.2, 0.35, 0.5, 0.65, 0.8)
"""The limits that `judges-limits` compares, beside the judge's own."""
_DATA = "aggrefact"
_OF_AGGREFACT = "agg_"
"""The beginning of the names of LLM-AggreFact's sets, in a file that has other sets too."""
_TRAINED_BESIDE = frozenset(
    (
        *("fever_symmetric", "fm2", "halueval_qa", "factcheckbench", "summedits"),
        *("wice_full", "wice_oracle", "agg_Wice"),
    )
)
"""The sets of demur's own file of which the judges were trained on other rows."""
_NO_SET = "no set"
"""The name of the set of lines that name none."""

OVERLAP = "overlap with the reference"
"""The name of the trivial rule that counts the words of a claim that its references have."""
AT_BEST = f"{OVERLAP}, at its best limit"
MEAN = " + ".join(f"{weight} {name}" for name, weight in _WEIGHTS.items())

Measured: TypeAlias = Sequence[Done[Judged]]
"""The claims of a set with what a judge says of each, and the cost."""
Valued: TypeAlias = Sequence[tuple[Claimed, float]]
"""Claims, each with a number, or with whether it passes."""
Statistic = Callable[[Sequence[float], Sequence[bool], Floats | None], Floats]
"""A function from claims' numbers, whether they are supported, and draws, to a number a draw."""


# --- The claims, and what a judge says of them ----------------------------------------------------


def by_set(rows: Iterable[LabelledRow]) -> dict[str, list[Claimed]]:
    """Return the claims of each set, by the sets' names in their order."""
    found: dict[str, list[LabelledRow]] = defaultdict(list)
    for row in rows:
        found[str(row.metadata.get("dataset", _NO_SET))].append(row)
    return {name: claims(of) for name, of in found.items()}


def choose(every: Sequence[Claimed], limit: int | None, seed: int) -> list[Claimed]:
    """Return at most `limit` claims in an order that the seed decides; None: all claims.

    The two kinds take turns as long as there are claims of both. A smaller choice is part of a
    larger one.
    """
    ordered = sorted(every, key=lambda one: place(seed, one.key))
    sides = [[one for one in ordered if one.supported is side] for side in (True, False)]
    turns = [(turn, one) for side in sides for turn, one in enumerate(side)]
    return [one for _, one in sorted(turns, key=lambda of: of[0])][:limit]


class Judge:
    """Check claims as RefChecker does with a judge.

    Raises:
        ValueError: The recording has no model of this name, or another one, or the model "local"
            has no adapter.
        DemurError: The judge is not available.
    """

    def __init__(self, bench: Bench, name: str, **options: Any) -> None:
        """Make the judge of a name; `options` are further ones of RefChecker."""
        match name:
            case "small":
                given: dict[str, Any] = {"model": SMALL}
            case "logprobs":
                given = {"model": bench.model, "checker": LOGPROBS}
            case _ if name in NAMED:
                given = yes_no(bench, name)
            case _:
                given = {"model": adapted(bench.model_of(name)), "checker": ADAPTER}
        self.evaluator = GivenClaims(**given, **options)

    @property
    def least(self) -> float | None:
        """Return the probability of Entailment from which RefChecker takes a claim as supported."""
        return self.evaluator.least

    def __call__(self, claim: Claimed, config: RunnableConfig) -> Judged:
        """Judge a claim. A claim that is undetermined has no score, and neither passes nor fails.

        Args:
            claim: The claim.
            config: The config that counts the calls.
        """
        found = self.evaluator.invoke(sample(claim.alone, claim.contexts), config)
        if found.undetermined:
            return Judged(claim, None, None)
        return Judged(claim, score(found), let_through(found))


def mean_of(found: Mapping[str, Measured]) -> list[Done[Judged]]:
    """Return the weighted mean of the judges' probabilities for each claim, if both judged it."""
    means = []
    for of_claim in zip(*(found[name] for name in _WEIGHTS), strict=True):
        scores = [one.value.score for one in of_claim]
        known = [
            weight * score
            for weight, score in zip(_WEIGHTS.values(), scores, strict=True)
            if score is not None
        ]
        mean = sum(known) if len(known) == len(scores) else None
        passed = None if mean is None else mean >= _LIMIT_OF_MEAN
        spent = total(one.spent for one in of_claim)
        means.append(Done(Judged(of_claim[0].value.claim, mean, passed), spent))
    return means


ANY_JUDGE_OPTION = f"{', '.join(JUDGES)}, or model: the one of --model [default: {SMALL}]"
"""What the option `judge` is, of tables about RefChecker with any judge."""


def any_judge(bench: Bench) -> BaseChatModel | str:
    """Return the judge that the option `judge` names, as RefChecker takes it.

    Raises:
        ValueError: The option names no judge, or several.
    """
    name = bench.one_of("judge", (*JUDGES, "model"), SMALL)
    if name == SMALL:
        return SMALL
    return adapted(bench.model if name == "model" else bench.model_of(name))


def judge_of(bench: Bench) -> str:
    """Return the name of the one judge that the option `judge` names.

    Raises:
        ValueError: The option names none of the judges, or several.
    """
    return bench.one_of("judge", _NAMES, SMALL)


def _floors(of: Sequence[Claimed]) -> dict[str, Measured]:
    """Return what the trivial rules say, which ask no model."""
    rules = {OVERLAP: [Judged(claim, overlap(claim), None) for claim in of]}
    rules |= {name: judged(of, [always] * len(of)) for name, always in FLOORS.items()}
    return {name: [Done(one, Spent()) for one in found] for name, found in rules.items()}


def with_scores(found: Measured) -> list[tuple[Claimed, float]]:
    """Return the claims that have a score, with it."""
    return [(one.value.claim, one.value.score) for one in found if one.value.score is not None]


def with_verdicts(found: Measured) -> list[tuple[Claimed, bool]]:
    """Return the claims that are decided, with whether they pass."""
    return [(one.value.claim, one.value.passed) for one in found if one.value.passed is not None]


# --- Figures of a set, or of several with equal weight --------------------------------------------


def over_sets(statistic: Statistic, sets: Mapping[str, Valued], seed: int, unit: int) -> Figure:
    """Return the mean of the sets' numbers, with an interval by drawing from each set by itself.

    Args:
        statistic: The statistic of a set.
        sets: The claims of each set, by its name.
        seed: The seed of the draws.
        unit: The factor of the figure: 100 for percent.
    """
    values, draws = [], []
    for name, of_set in sets.items():
        numbers = [number for _, number in of_set]
        kinds = [claim.supported for claim, _ in of_set]
        # Equal seeds would draw alike from sets of the same size.
        own = int.from_bytes(place(seed, name)[:8], "big")
        times = drawn([claim.group for claim, _ in of_set], own)
        values.append(statistic(numbers, kinds, None)[0])
        draws.append(statistic(numbers, kinds, times))
    return figure(unit * float(np.mean(values)), unit * np.mean(draws, axis=0))


def best_limit(sets: Iterable[Valued]) -> float:
    """Return the limit with the greatest mean of the sets' balanced accuracies.

    Of several, it is the highest, which lets the fewest wrong claims pass. It is infinite if it is
    best that nothing passes.
    """
    every = [
        (np.array([number for _, number in of_set]), [claim.supported for claim, _ in of_set])
        for of_set in sets
    ]

    def accuracy(limit: float) -> float:
        return float(np.mean([balanced_accuracy(of >= limit, kinds)[0] for of, kinds in every]))

    candidates = sorted({math.inf, *(float(number) for of, _ in every for number in of)})
    return max(reversed(candidates), key=accuracy)


def at_limit(sets: Mapping[str, Valued], limit: float) -> dict[str, list[tuple[Claimed, bool]]]:
    """Return the claims of each set with whether they reach a limit."""
    return {
        name: [(claim, number >= limit) for claim, number in of_set]
        for name, of_set in sets.items()
    }


def overlap_at_best(sets: Mapping[str, Sequence[Claimed]]) -> dict[str, list[tuple[Claimed, bool]]]:
    """Return the claims of each set with whether enough words stand in the reference.

    The limit is the best one for all sets together.
    """
    shares = {of: [(claim, overlap(claim)) for claim in chosen] for of, chosen in sets.items()}
    return at_limit(shares, best_limit(shares.values()))


def errors(sets: Mapping[str, Sequence[tuple[Claimed, bool]]], seed: int) -> tuple[Figure, Figure]:
    """Return the share of wrong claims that pass, and of right claims that fail, in percent."""
    if len(sets) > 1:
        return (
            over_sets(lambda *of: pass_rates(*of)[1], sets, seed, 100),
            over_sets(lambda *of: 1 - pass_rates(*of)[0], sets, seed, 100),
        )
    (of_set,) = sets.values()
    return (
        grouped_share([(passes, one.group) for one, passes in of_set if not one.supported]),
        grouped_share([(not passes, one.group) for one, passes in of_set if one.supported]),
    )


_ACCURACY = Column("balanced accuracy, %")
_ERRORS = (Column("wrong claims that pass, %"), Column("right claims that fail, %"))
OF_INTERVALS = (
    "Claims with the same documents are drawn together. Each set is drawn by itself, and a macro "
    "mean gives it the same weight."
)


def of_macro(bench: Bench) -> dict[str, list[Claimed]]:
    """Return the claims to judge of each set that the macro mean is of."""
    sets = by_set(bench.read(_DATA))
    _, names = macro([*sets])
    return {of: choose(sets[of], bench.limit, bench.seed) for of in names}


def macro(names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of the macro mean, and the sets that it is of."""
    of_aggrefact = [name for name in names if name.startswith(_OF_AGGREFACT)]
    if len(of_aggrefact) > 1:
        return "AggreFact, macro", of_aggrefact
    return "all sets, macro", [*names]


# --- How good each judge is -----------------------------------------------------------------------

COLUMNS = (
    Column("AUROC", 3),
    _ACCURACY,
    Column("balanced accuracy at the best limit, %"),
    *_ERRORS,
)


def judge_row(name: str, sets: Mapping[str, Measured], seed: int, floor: bool) -> Row:
    """Return the row of a judge or a rule on a set, or on several as their macro mean."""
    scored = {of: with_scores(found) for of, found in sets.items()}
    decided = {of: with_verdicts(found) for of, found in sets.items()}
    best = at_limit(scored, best_limit(scored.values()))
    items, scores = sum(map(len, sets.values())), sum(map(len, scored.values()))
    return Row(
        name,
        (
            over_sets(auroc, scored, seed, 1),
            over_sets(balanced_accuracy, decided, seed, 100),
            over_sets(balanced_accuracy, best, seed, 100),
            *errors(decided, seed),
        ),
        items=scores,
        undetermined=items - scores,
        spent=mean_cost([one for found in sets.values() for one in found]),
        floor=floor,
    )


def _judges(bench: Bench) -> Result:
    sets = by_set(bench.read(_DATA))
    names = bench.names("sets", sets)
    judges = {name: Judge(bench, name) for name in bench.names("judges", _NAMES, JUDGES)}
    measured: dict[str, dict[str, Measured]] = defaultdict(dict)
    for of in names:
        chosen = choose(sets[of], bench.limit, bench.seed)
        for name, judge in judges.items():
            measured[name][of] = bench.each(f"{of}, {name}", chosen, judge)
        if judges.keys() >= _WEIGHTS.keys():
            measured[MEAN][of] = mean_of({name: measured[name][of] for name in JUDGES})
        for name, found in _floors(chosen).items():
            measured[name][of] = found

    def row(title: str, name: str, of_row: Sequence[str]) -> Row:
        found = {of: measured[name][of] for of in of_row}
        return judge_row(f"{title}, {name}", found, bench.seed, floor=name not in (*judges, MEAN))

    marked = {of: f"{of} *" if of in _TRAINED_BESIDE else of for of in names}
    rows = [row(marked[of], name, [of]) for of in names for name in measured]
    title, together = macro(names)
    if len(together) > 1:
        rows += [row(title, name, together) for name in measured]
    return Result(
        COLUMNS,
        tuple(rows),
        (
            *(
                f'"{name}" takes a claim as supported {_from(judge)}.'
                for name, judge in judges.items()
            ),
            *([f'"{MEAN}" does from {_LIMIT_OF_MEAN} on.'] if MEAN in measured else []),
            "* The judges were trained on other rows of this set.",
            "The best limit is chosen on the claims that it is measured on, so expect less of it "
            "on others. A macro mean has one limit for all its sets. All draws of an interval have "
            "the same limit.",
            OF_INTERVALS,
            "The AUROC is of the probability of Entailment, in the window that supports the claim "
            "most.",
        ),
    )


def _from(judge: Judge) -> str:
    return "if that is most likely" if judge.least is None else f"from {judge.least} on"


TABLE = Table(
    "judges",
    "demur",
    "How well demur's own judges tell supported claims from others, in each set of a file.",
    (_DATA,),
    _judges,
    options={
        "judges": f"some of {_OF_NAMES}; with commas between [default: {','.join(JUDGES)}]",
        "sets": "some of the sets in the data, with commas between [default: all]",
    },
)


# --- What a limit costs ---------------------------------------------------------------------------


def _limits(bench: Bench) -> Result:
    name = judge_of(bench)
    judge, sets = Judge(bench, name), of_macro(bench)
    asked: list[Done[Judged]] = []
    scored: dict[str, list[tuple[Claimed, float]]] = {}
    for of, chosen in sets.items():
        done = bench.each(f"{of}, {name}", chosen, judge)
        asked += done
        scored[of] = with_scores(done)
    items = sum(map(len, scored.values()))

    def figures(passed: Mapping[str, Sequence[tuple[Claimed, bool]]]) -> tuple[Figure, ...]:
        accuracy = over_sets(balanced_accuracy, passed, bench.seed, 100)
        return accuracy, *errors(passed, bench.seed)

    rows = [
        Row(
            named,
            figures(at_limit(scored, least)),
            items=items,
            undetermined=len(asked) - items,
            spent=mean_cost(asked),
        )
        for named, least in limits(judge.least, _LIMITS).items()
    ]
    for named, least in (("everything passes", -math.inf), ("nothing passes", math.inf)):
        rows.append(Row(named, figures(at_limit(scored, least)), items=items, floor=True))
    rows.append(Row(AT_BEST, figures(overlap_at_best(sets)), items=len(asked), floor=True))
    return Result(
        (_ACCURACY, *_ERRORS),
        tuple(rows),
        (
            f'The judge is "{name}". The figures are means over the sets {", ".join(sets)}.',
            OF_INTERVALS,
            "Each claim is judged once, and its probability is held against every limit.",
        ),
    )


LIMITS = Table(
    "judges-limits",
    "demur",
    "How the errors of a judge of demur's own change with the limit from which a claim counts as "
    "supported.",
    (_DATA,),
    _limits,
    options={"judge": JUDGE_OPTION},
)

TABLES = (TABLE, LIMITS)
