"""Measure judges on claims in thirteen languages, about passages in the same or another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from demur_research.bench import Bench, Result, Row, Table, mean_cost
from demur_research.tables.exact import COLUMNS, SEARCH, Measured, measured, row
from demur_research.tables.judges import JUDGE_OPTION, judge_of
from demur_research.texts.translated import ENGLISH, TranslatedClaim, languages, translated

_PAIRS: Mapping[str, Callable[[str], tuple[str, str]]] = {
    "same": lambda language: (language, language),
    "claim": lambda language: (language, ENGLISH),
    "passage": lambda language: (ENGLISH, language),
}
"""The languages of claim and passage, by what is in another language than English: both, the claim,
or the passage."""


def _name(of_claim: str, of_passage: str) -> str:
    return f"{of_claim}, passage {of_passage}"


def _make(bench: Bench) -> Result:
    name = judge_of(bench)
    asked = bench.names("languages", languages())
    pairs = {
        kind: [
            _PAIRS[kind](language) for language in asked if kind == "same" or language != ENGLISH
        ]
        for kind in bench.names("pairs", _PAIRS)
    }
    texts = {pair: [*translated(*pair)][: bench.limit] for of in pairs.values() for pair in of}
    # Sorted by passage, because a server does not process again a passage it has just read.
    every = sorted((one for of in texts.values() for one in of), key=lambda one: one.passage)
    found = dict(zip(every, measured(bench, name, every), strict=True))
    rows: list[Row] = []
    for kind, of_kind in pairs.items():
        rows += [row(_name(*pair), [found[one] for one in texts[pair]]) for pair in of_kind]
        foreign = [pair for pair in of_kind if pair != (ENGLISH, ENGLISH)]
        rows += _by_what_decides(kind, [found[one] for pair in foreign for one in texts[pair]])
    spent = mean_cost([one.done for one in found.values()])
    rows.append(Row("cost of a claim", (None,) * len(COLUMNS), items=len(found), spent=spent))
    return Result(
        COLUMNS,
        tuple(rows),
        (
            f'The judge is "{name}". {SEARCH}',
            "Thirty cases with a right and a wrong claim, translated from English. The rows of all "
            "and of what decides leave out English claims about English passages. Claims in other "
            "letters than their passage are undetermined.",
        ),
    )


def _by_what_decides(kind: str, of: Sequence[Measured[TranslatedClaim]]) -> list[Row]:
    """Return a row for all claims, and one for each thing that decides."""
    decides = dict.fromkeys(one.claim.kind for one in of)
    names = {"same": "same language", "claim": "passage en", "passage": "claim en"}
    every = [row(f"all, {names[kind]}", of)] if of else []
    return every + [
        row(f"{what}, {names[kind]}", [one for one in of if one.claim.kind == what])
        for what in decides
    ]


LANGUAGES = Table(
    "languages",
    "demur",
    "How judges do in other languages, and where claim and passage are in different ones.",
    (),
    _make,
    options={
        "judge": JUDGE_OPTION,
        "languages": f"some of {', '.join(languages())}, with commas between [default: all]",
        "pairs": f"what is not in English: {', '.join(_PAIRS)}; same means both, in one language "
        "[default: all three]",
    },
)

TABLES = (LANGUAGES,)
