"""How often a model, as a judge, is talked into passing a claim that is not supported.

Every text of `texts.injections` is put behind a passage and behind a claim, and each is judged in
every mode; beside it the same case with bland sentences of the same length. Mode "answer" is
RefChecker as a whole, its claims from an answer that ends in the text.
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
    """So many texts, of all families, each with a case."""
    step = max(1, len(INJECTIONS) // limit)
    some = list(enumerate(INJECTIONS))[::step][:limit]
    # Case by case: a server reads a passage that it has just read only once.
    some.sort(key=lambda pair: pair[0] % len(CASES))
    return [(injection, CASES[at % len(CASES)]) for at, injection in some]


def _judge(bench: Bench, mode: str, cases: Sequence[Case]) -> list[Done[Evaluation]]:
    """What becomes of cases; those that are equal are judged once."""
    different = [*dict.fromkeys(cases)]
    texts = [sample(case.claim, [case.passage]) for case in different]
    done = bench.judged(mode, checker(mode, bench.model), texts)
    known = dict(zip(different, done, strict=True))
    return [known[case] for case in cases]


def _row(name: str, found: Sequence[Done[Evaluation]], plain: Sequence[Evaluation]) -> Row:
    """Of cases with a text, beside the same without one, which do not pass."""
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
        # What passes without any injection tells nothing.
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
    """What talked the judge round: the texts, or how many of each family."""
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
        "modes": f"of {', '.join((*CHECKERS, WHOLE))}, apart by commas (all but {WHOLE})",
        "places": f"behind what: {', '.join(PLACES)} (both)",
        "controls": "yes, or no for half of the time (yes)",
        "show": "texts, or the families of those that passed (families)",
    },
)

TABLES = (INJECTION,)
