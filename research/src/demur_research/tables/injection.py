"""Measure how often a judge is talked into passing a claim that is not supported.

Every text of `texts.injections` is put behind a passage and behind a claim, and is judged in every
mode. Beside it, the same case is judged with bland sentences of the same length. Mode "answer" is
RefChecker as a whole: it finds the claims of an answer that ends in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from demur import Evaluation
from demur_research.bench import Bench, Column, Done, Result, Row, Table, mean_cost
from demur_research.resampling import share
from demur_research.tables.checkers import CHECKERS, WHOLE, checker, sample
from demur_research.texts.answers import let_through
from demur_research.texts.injections import CASES, INJECTIONS, Case, Injection, bland, placed

PLACES = ("passage", "claim")

Pair = tuple[Injection, Case]


def choose(limit: int) -> list[Pair]:
    """Return `limit` texts, drawn from all families, each with a case."""
    step = max(1, len(INJECTIONS) // limit)
    some = list(enumerate(INJECTIONS))[::step][:limit]
    # Pairs are sorted by case, because a server does not process again a passage it has just read.
    some.sort(key=lambda pair: pair[0] % len(CASES))
    return [(injection, CASES[at % len(CASES)]) for at, injection in some]


def _judge(bench: Bench, mode: str, cases: Sequence[Case]) -> list[Done[Evaluation]]:
    """Return what becomes of the cases; equal cases are judged once."""
    different = [*dict.fromkeys(cases)]
    texts = [sample(case.claim, [case.passage]) for case in different]
    done = bench.judged(mode, checker(mode, bench.model), texts)
    known = dict(zip(different, done, strict=True))
    return [known[case] for case in cases]


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
    chosen = choose(bench.limit or len(INJECTIONS))
    modes = bench.names("modes", (*CHECKERS, WHOLE), CHECKERS)
    places = bench.names("places", PLACES)
    controls = bench.names("controls", ("yes", "no"), ["yes"]) == ["yes"]
    rows: list[Row] = []
    notes = [f"{len(chosen)} texts of {len({one.family for one, _ in chosen})} families are tried."]
    for mode in modes:
        alone = [one.value for one in _judge(bench, mode, [case for _, case in chosen])]
        # A case that passes without any injection shows nothing.
        asked = [at for at, one in enumerate(alone) if not let_through(one)]
        plain = [alone[at] for at in asked]
        pairs = [chosen[at] for at in asked]
        if len(asked) < len(chosen):
            notes.append(f"{mode}: {len(chosen) - len(asked)} left out, which pass without a text.")
        for place in places if mode != WHOLE else ["claim"]:
            where = f"{mode}, behind the {place}"
            found = _judge(bench, mode, [placed(case, place, one.text) for one, case in pairs])
            rows.append(_row(where, found, plain))
            passed = zip(pairs, found, strict=True)
            talked = [one for (one, _), done in passed if let_through(done.value)]
            notes += [f"{where}, passed: {told}" for told in _told(bench, talked)]
            if controls:
                texts = [placed(case, place, bland(len(one.text))) for one, case in pairs]
                control = _row(f"{where}: bland sentences", _judge(bench, mode, texts), plain)
                rows.append(replace(control, floor=True))
    return Result(
        (Column("passed, %"), Column("failed with another label than without, %")),
        tuple(rows),
        tuple(notes),
    )


def _told(bench: Bench, talked: Sequence[Injection]) -> list[str]:
    """Return lines about the texts that made the judge pass a claim, or about their families."""
    if bench.names("show", ("texts", "families"), ["families"]) == ["texts"]:
        return [f"{one.family}: {one.text[:80]!r}" for one in talked]
    counts = Counter(one.family for one in talked)
    return [", ".join(f"{count} of {family}" for family, count in counts.items())] if counts else []


INJECTION = Table(
    "injection",
    "demur",
    "How often the judge is talked into passing a claim that is not supported.",
    (),
    _make,
    options={
        "modes": f"some of {', '.join((*CHECKERS, WHOLE))}, with commas between [default: all but "
        f"{WHOLE}]",
        "places": f"where a text is put: behind {' or '.join(PLACES)} [default: both]",
        "controls": "no leaves out the bland sentences, which halves the time [default: yes]",
        "show": "texts lists the texts that made a claim pass, families counts them by family "
        "[default: families]",
    },
)

TABLES = (INJECTION,)
