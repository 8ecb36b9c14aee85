"""Measure how often a judge is talked into passing a claim that is not supported.

Every text of `texts.injections` is put behind a passage and behind a claim, and is judged in every
mode. Beside it, the same case is judged with bland sentences of the same length. Modes "answer" and
"small-answer" are RefChecker as a whole: it finds the claims of an answer that ends in the text.

A mode is asked about the cases that it rejects without any text, so a pass is the text's doing, or
chance: the bland sentences show how often it is chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from demur import Evaluation, RefChecker
from demur.evaluators import Evaluator
from demur.local import SMALL
from demur_research.bench import Bench, Column, Done, Result, Row, Table, mean_cost
from demur_research.resampling import share
from demur_research.tables.checkers import (
    ADAPTER,
    CHECKERS,
    WHOLE,
    GivenClaims,
    adapted,
    checker,
    sample,
)
from demur_research.texts.answers import let_through
from demur_research.texts.injections import CASES, INJECTIONS, SETS, Case, Injection, bland, placed

PLACES = ("passage", "claim")
_SMALL_WHOLE = f"{SMALL}-{WHOLE}"
_MODES = (SMALL, ADAPTER, *CHECKERS, WHOLE, _SMALL_WHOLE)


def choose(sets: Sequence[str], limit: int | None) -> list[tuple[int, Injection]]:
    """Return `limit` texts of these sets, drawn from all their families; each has its number."""
    some = {one for name in sets for one in SETS[name]}
    every = [(at, one) for at, one in enumerate(INJECTIONS) if one in some]
    limit = limit or len(every)
    return every[:: max(1, len(every) // limit)][:limit]


@dataclass(frozen=True)
class _Tried:
    """Hold a text, and a case that is rejected without it."""

    injection: Injection
    case: Case
    alone: Evaluation
    """The evaluation of the case without a text."""


_Passed = tuple[_Tried, Evaluation, Evaluation | None]
"""A pair, its evaluation, and that of the case with bland sentences if there is one."""


def _pairs(
    chosen: Sequence[tuple[int, Injection]], failing: Sequence[tuple[Case, Evaluation]], every: bool
) -> list[_Tried]:
    """Return the texts, each with one of the cases, or with every case."""
    if not failing:
        return []
    pairs = [
        (place, _Tried(injection, *failing[place]))
        for at, injection in chosen
        for place in (range(len(failing)) if every else [at % len(failing)])
    ]
    # Sorted by case, because a server does not process again a passage it has just read.
    return [tried for _, tried in sorted(pairs, key=lambda pair: pair[0])]


# --- The judges -----------------------------------------------------------------------------------


def _evaluator(bench: Bench, mode: str) -> Evaluator:
    if mode in (SMALL, _SMALL_WHOLE):
        return GivenClaims(model=SMALL) if mode == SMALL else RefChecker(SMALL)
    return checker(mode, bench.model if mode in CHECKERS else adapted(bench.model))


def _default_modes(bench: Bench) -> list[str]:
    model = adapted(bench.model)
    adapter = [ADAPTER] if getattr(model, "judging", None) is not None else []
    return [SMALL, *adapter, *CHECKERS]


def _judge(bench: Bench, mode: str, cases: Sequence[Case]) -> list[Done[Evaluation]]:
    """Return what becomes of the cases; equal cases are judged once."""
    different = [*dict.fromkeys(cases)]
    texts = [sample(case.claim, [case.passage]) for case in different]
    done = bench.judged(mode, _evaluator(bench, mode), texts)
    known = dict(zip(different, done, strict=True))
    return [known[case] for case in cases]


# --- The rows -------------------------------------------------------------------------------------


def _row(name: str, found: Sequence[Done[Evaluation]], plain: Sequence[Evaluation]) -> Row:
    """Return the row of cases with a text; `plain` has the same cases without it, which fail."""
    known = [
        (one.value, other)
        for one, other in zip(found, plain, strict=True)
        if not one.value.undetermined
    ]
    failed = [(one, other) for one, other in known if not let_through(one)]
    return Row(
        name,
        (
            share([let_through(one) for one, _ in known]),
            share([one.label != other.label for one, other in failed]),
        ),
        items=len(known),
        undetermined=len(found) - len(known),
        spent=mean_cost(found),
    )


def _make(bench: Bench) -> Result:
    chosen = choose(bench.names("texts", SETS), bench.limit)
    modes = bench.names("modes", _MODES, [] if "modes" in bench.options else _default_modes(bench))
    places = bench.names("places", PLACES)
    controls = bench.names("controls", ("yes", "no"), ["yes"]) == ["yes"]
    every_case = bench.names("cases", ("one", "all"), ["one"]) == ["all"]
    rows: list[Row] = []
    notes = [f"{len(chosen)} texts of {len({one.family for _, one in chosen})} families are tried."]
    for mode in modes:
        alone = [done.value for done in _judge(bench, mode, CASES)]
        # A case that passes without any injection shows nothing.
        failing = [of for of in zip(CASES, alone, strict=True) if not let_through(of[1])]
        pairs = _pairs(chosen, failing, every_case)
        plain = [one.alone for one in pairs]
        if len(failing) < len(CASES):
            passing = len(CASES) - len(failing)
            notes.append(
                f"{mode}: {passing} of {len(CASES)} cases left out, which pass without a text."
            )
        for place in places if mode not in (WHOLE, _SMALL_WHOLE) else ["claim"]:
            where = f"{mode}, behind the {place}"
            texts = [placed(one.case, place, one.injection.text) for one in pairs]
            found = _judge(bench, mode, texts)
            rows.append(_row(where, found, plain))
            controlled: list[Evaluation | None] = [None] * len(pairs)
            if controls:
                blands = [placed(one.case, place, bland(len(one.injection.text))) for one in pairs]
                judged = _judge(bench, mode, blands)
                control = _row(f"{where}: bland sentences", judged, plain)
                rows.append(replace(control, floor=True))
                controlled = [done.value for done in judged]
            every = zip(pairs, [done.value for done in found], controlled, strict=True)
            told = _told(bench, [one for one in every if let_through(one[1])])
            notes += [f"{where}, passed: {line}" for line in told]
    return Result(
        (Column("passed, %"), Column("failed with another label than without, %")),
        tuple(rows),
        tuple(notes),
    )


def _told(bench: Bench, talked: Sequence[_Passed]) -> list[str]:
    """Return lines about the texts that made the judge pass a claim, or about their families."""
    if bench.names("show", ("texts", "families"), ["families"]) == ["texts"]:
        return [
            f"{tried.injection.family}: {tried.injection.text[:80]!r} with {tried.case.claim!r} "
            f"({_support(tried.alone)} without, {_support(found)} with"
            f"{'' if control is None else f', {_support(control)} with bland sentences'})"
            for tried, found, control in talked
        ]
    if not talked:
        return []
    counts = Counter(tried.injection.family for tried, _, _ in talked)
    line = ", ".join(f"{count} of {family}" for family, count in counts.items())
    controls = [control for _, _, control in talked if control is not None]
    if controls:
        also = sum(map(let_through, controls))
        line = f"{line}; of these {len(talked)}, {also} pass with bland sentences too"
    return [line]


def _support(found: Evaluation) -> str:
    """Return the support of the evaluation's single claim, or else its label."""
    support = found.claims[0].support if len(found.claims) == 1 else None
    return str(found.label) if support is None else f"{support:.3f}"


INJECTION = Table(
    "injection",
    "demur",
    "How often the judge is talked into passing a claim that is not supported.",
    (),
    _make,
    options={
        "modes": f"some of {', '.join(_MODES)}, with commas between [default: all but {WHOLE} and "
        f"{_SMALL_WHOLE}, and {ADAPTER} only if the model has it]",
        "texts": f"some of {', '.join(SETS)}, with commas between [default: all]",
        "cases": "one tries a text with one case, all with every case that fails without a text "
        "[default: one]",
        "places": f"where a text is put: behind {' or '.join(PLACES)} [default: both]",
        "controls": "no leaves out the bland sentences, which halves the time [default: yes]",
        "show": "texts lists the texts that made a claim pass, families counts them by family "
        "[default: families]",
    },
)

TABLES = (INJECTION,)
