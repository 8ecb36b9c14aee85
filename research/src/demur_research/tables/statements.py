"""Measure in many languages whether the rules tell statements from texts that state nothing.

No model is asked: whether a text states anything is decided by its form. A statement for which the
rules have no claim passes silently, whatever judge is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from demur import Sample
from demur.evaluators.refchecker.coverage import stating
from demur_research.bench import Bench, Column, Result, Row, Table
from demur_research.resampling import share
from demur_research.texts.statements import Text, texts

_PARTS = {"in sight": False, "held out": True}
"""Whether texts were held out while the rules were written, by the name of that part."""


def _found(one: Text) -> bool:
    """Return whether the rules take a text for a statement."""
    return bool(stating(Sample(answer=one.text)))


def _row(name: str, of: Sequence[Text]) -> Row:
    decided = [(one.states, _found(one)) for one in of]
    return Row(
        name,
        (
            share([not found for states, found in decided if states]),
            share([found for states, found in decided if not states]),
        ),
        items=len(of),
    )


def _make(bench: Bench) -> Result:
    asked = bench.names("languages", dict.fromkeys(one.language for one in texts()))
    every = [one for one in texts() if one.language in asked]
    rows = []
    for part, held_out in _PARTS.items():
        of_part = [one for one in every if one.held_out is held_out]
        known = [one for one in of_part if one.known]
        for language in dict.fromkeys(one.language for one in known):
            of = [one for one in known if one.language == language][: bench.limit]
            rows.append(_row(f"{language}, {part}", of))
        rows.append(_row(f"all, {part}", known))
        rows.append(_row(f"languages without rules, {part}", [o for o in of_part if not o.known]))
    shown = bench.names("show", _PARTS, [])
    wrong = [
        f"{one.language}, {one.kind}: {one.text!r} ({one.english})"
        for one in every
        for part in shown
        if one.known and one.held_out is _PARTS[part] and _found(one) is not one.states
    ]
    return Result(
        (
            Column("statements that pass silently, %"),
            Column("harmless texts taken for statements, %"),
        ),
        tuple(rows),
        (
            "The texts were written without knowledge of the rules. Those held out were first "
            "measured unread. Then the rules were mended by them, so their rows flatter now.",
            "In a language without rules every text is taken for a statement.",
            *wrong,
        ),
    )


STATEMENTS = Table(
    "statements",
    "demur",
    "Whether the rules tell statements from texts that state nothing, in each language.",
    (),
    _make,
    options={
        "languages": "codes of languages, with commas between [default: all]",
        "show": f"lists the texts that are decided wrongly: {' or '.join(_PARTS)} [default: none]",
    },
    asks=False,
)

TABLES = (STATEMENTS,)
