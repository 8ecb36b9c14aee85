"""Measure RefChecker on demur's own texts: what passes unchecked, also amid much other text.

RefChecker judges every answer of `texts.answers`. A silent pass is an answer that is let through
(passed, or said to state nothing) although no claim with a label covers one of its statements.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from demur import Evaluation, RefChecker, Sample
from demur_research.bench import Bench, Column, Done, Result, Row, Table, mean_cost
from demur_research.resampling import share
from demur_research.spending import Spent
from demur_research.tables.checkers import FLOORS
from demur_research.tables.judges import ANY_JUDGE_OPTION, any_judge
from demur_research.texts.answers import ANSWERS, STATING, Answer, let_through, unchecked
from demur_research.texts.bland import samples

FORMS: dict[str, Literal["auto", "sentences", "triplets"]] = {
    "auto": "auto",
    "sentences": "sentences",
    "triplets": "triplets",
}
"""The values of RefChecker's argument `claims`: what it takes for a claim."""
_SPLITS = ("kind", "language")
_SEED = 23

Judged = Sequence[tuple[Answer, Done[Evaluation]]]
"""Answers, each with its evaluation and the cost of it."""


def choose(limit: int) -> list[Answer]:
    """Return `limit` answers, with each stratum in proportion.

    A smaller choice is part of a larger one.
    """
    chance = random.Random(_SEED)
    strata: dict[tuple[object, ...], list[Answer]] = defaultdict(list)
    for one in chance.sample(ANSWERS, len(ANSWERS)):
        # Each language has too few answers that state nothing to divide them by kind.
        strata[one.language, one.supported, one.kind if one.states else ""].append(one)
    places = {
        one.id: ((at + chance.random()) / len(stratum), one.id)
        for stratum in strata.values()
        for at, one in enumerate(stratum)
    }
    chosen = set(sorted(places, key=places.__getitem__)[:limit])
    return [one for one in ANSWERS if one.id in chosen]


def figures(name: str, judged: Judged, floor: bool = False) -> Row:
    """Return the row of answers and their evaluations."""
    found = [(one, done.value) for one, done in judged if not done.value.undetermined]
    silent = [
        (one, let_through(of_it) and bool(unchecked(one, of_it)))
        for one, of_it in found
        if one.states
    ]
    passed = [(one.supported, let_through(of_it)) for one, of_it in found]
    return Row(
        name,
        (
            share([unseen for _, unseen in silent]),
            share([unseen for one, unseen in silent if one.supported is False]),
            share([through for supported, through in passed if supported is False]),
            share([of_it.passed is False for one, of_it in found if one.supported is True]),
            share([of_it.label != "Abstain" for one, of_it in found if not one.states]),
        ),
        items=len(found),
        undetermined=len(judged) - len(found),
        spent=mean_cost([done for _, done in judged]),
        floor=floor,
    )


def _silent(bench: Bench) -> Result:
    forms = bench.names("claims", FORMS, ["auto"])
    splits = bench.names("by", _SPLITS, [])
    judge = any_judge(bench)
    answers = choose(bench.limit or len(ANSWERS))
    texts = [Sample(**one.sample) for one in answers]
    rows = []
    for form in forms:
        checker = RefChecker(judge, claims=FORMS[form])
        judged = [*zip(answers, bench.judged(f"claims={form}", checker, texts), strict=True)]
        rows.append(figures(f"claims={form}", judged))
        for split in splits:
            for value in dict.fromkeys(getattr(one, split) for one in STATING):
                part = [pair for pair in judged if getattr(pair[0], split) == value]
                rows.append(figures(f"claims={form}, {value}", part))
    for name, always in FLOORS.items():
        rows.append(figures(name, [(one, Done(always, Spent())) for one in answers], floor=True))
    stating = [one.supported for one in answers if one.states]
    return Result(
        (
            Column("silent passes, of what states something, %"),
            Column("silent passes, of what is unsupported, %"),
            Column("let through, of what is unsupported, %"),
            Column("failed, of what is supported, %"),
            Column("treated as claims, of what states nothing, %"),
        ),
        tuple(rows),
        (
            f"{len(answers)} answers of our own: {stating.count(True)} supported, "
            f"{stating.count(False)} unsupported, {len(answers) - len(stating)} that state nothing",
            "A silent pass is an answer that is let through although one of its statements was "
            "never checked.",
        ),
    )


SILENT = Table(
    "unchecked",
    "demur",
    "How many answers pass although something that they state was never checked.",
    (),
    _silent,
    options={
        "judge": ANY_JUDGE_OPTION,
        "claims": f"what a claim is: {', '.join(FORMS)}; several with commas between "
        "[default: auto]",
        "by": f"adds rows for each {' or '.join(_SPLITS)} [default: neither]",
    },
)


# --- Long contexts --------------------------------------------------------------------------------


def padding(length: int) -> list[str]:
    """Return passages about other things, of at least `length` characters in all."""
    texts: list[str] = []
    for sample in samples(1 + length // 1000):
        texts += [document.page_content for document in sample.contexts]
        if sum(map(len, texts)) >= length:
            break
    return texts


def _amid(answers: Sequence[Answer], others: Sequence[str]) -> Iterator[Sample]:
    """Yield the answers with one context, at places in it from the beginning to the end."""
    for number, one in enumerate(answers):
        at = len(others) * number // max(1, len(answers) - 1)
        text = "\n\n".join([*others[:at], *one.contexts, *others[at:]])
        yield Sample(**{**one.sample, "contexts": [text]})


def _recall(name: str, judged: Judged, floor: bool = False) -> Row:
    found = [(one, done.value) for one, done in judged if not done.value.undetermined]
    return Row(
        name,
        tuple(
            share([let_through(of_it) is wanted for one, of_it in found if one.supported is wanted])
            for wanted in (False, True)
        ),
        items=len(found),
        undetermined=len(judged) - len(found),
        spent=mean_cost([done for _, done in judged]),
        floor=floor,
    )


def _long_contexts(bench: Bench) -> Result:
    judge = any_judge(bench)
    answers: list[Answer] = []
    for supported in (False, True):
        of_kind = [one for one in STATING if one.supported is supported]
        answers += random.Random(1).sample(of_kind, len(of_kind))[: bench.limit]
    others = padding(bench.number("length", 50_000))

    def row(name: str, around: Sequence[str], most: int | None = None) -> Row:
        placed = [
            sample
            for supported in (False, True)
            for sample in _amid([one for one in answers if one.supported is supported], around)
        ]
        judged = bench.judged(name, RefChecker(judge, max_windows=most), placed)
        return _recall(name, [*zip(answers, judged, strict=True)])

    amid = f"amid {sum(map(len, others)):,} characters"
    rows = [row("their own", [])]
    for most in bench.names("windows", _WINDOWS, _WINDOWS):
        rows.append(row(f"{amid}, max_windows={most}", others, int(most)))
    for name, always in FLOORS.items():
        rows.append(_recall(name, [(one, Done(always, Spent())) for one in answers], floor=True))
    return Result(
        (Column("unsupported that do not pass, %"), Column("supported that pass, %")),
        tuple(rows),
        (
            "The answers are our own, in several languages. The other text is English.",
            "A claim is held against the windows that are nearest to it.",
        ),
    )


_WINDOWS = ("1", "2", "3", "4", "8")
LONG_CONTEXTS = Table(
    "long-contexts",
    "demur",
    "How answers are judged if the deciding passage stands amid other text.",
    (),
    _long_contexts,
    options={
        "judge": ANY_JUDGE_OPTION,
        "length": "the length of the other text, in characters [default: 50,000]",
        "windows": f"max_windows: some of {', '.join(_WINDOWS)}, with commas between "
        "[default: all]",
    },
)

TABLES = (SILENT, LONG_CONTEXTS)
