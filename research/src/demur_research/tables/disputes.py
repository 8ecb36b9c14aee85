"""Measure whether readings of single passages tell claims that passages disagree about.

They do not, well enough to act on (docs/measured-on-the-way.md). Each way is given the two passages
that are about the claim, which demur would have to find first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from demur import ClaimLabel, Evaluation, RefChecker
from demur.evaluators.refchecker.content_words import beginnings
from demur.schema import NLI_LABELS
from demur_research.bench import Bench, Column, Figure, Result, Row, Table
from demur_research.resampling import grouped_share
from demur_research.tables.checkers import adapted, sample
from demur_research.texts.answers import let_through
from demur_research.texts.disputes import Disputed, disputed_claims

_NAME = "local"
_STATEMENT = "This text answers the question: {}"
_MARKED = 0.05
"""The share of the other claims in sight that may be marked. It gives the limit of each way."""
_CLEAR = 0.5
_SURE = 0.998
_OF_WORDS = 8
"""The weight of words, which was chosen on the claims in sight."""


@dataclass(frozen=True)
class _Read:
    """Hold what the judge finds in the passages of a claim."""

    case: Disputed
    passes: bool
    together: Mapping[ClaimLabel, float]
    """The probabilities of the labels by all passages."""
    supported: float
    """The greater probability of Entailment by one of the two passages alone."""
    contradicted: float
    """The probability of Contradiction by the other one alone."""
    answering: float
    """The probability that the other one answers the question."""
    words: float
    """The share of the claim's words that the other one has."""


def _apart(read: _Read) -> float:
    return min(read.supported, read.contradicted)


def _with_all(read: _Read) -> float:
    clear = read.supported >= _CLEAR <= read.contradicted
    return _log_odds(read.together[ClaimLabel.CONTRADICTION]) if clear else -math.inf


def _with_question(read: _Read) -> float:
    return _with_all(read) + _log_odds(read.answering)


def _with_words(read: _Read) -> float:
    return _with_question(read) + _OF_WORDS * read.words


_WAYS: Mapping[str, Callable[[_Read], float]] = {
    "one supports, the other contradicts": _apart,
    "and all together seem to contradict": _with_all,
    "and the other answers the question": _with_question,
    "and it has the claim's words": _with_words,
}
_PASSES = "passes, as demur judges"


def _made(bench: Bench) -> Result:
    cases = disputed_claims()[: bench.limit]
    every = _readings(bench, cases)
    unknown = len(cases) - len(every)
    sides = {
        held_out: [
            [one for one in every if (one.case.held_out, one.case.contested) == (held_out, side)]
            for side in (True, False)
        ]
        for held_out in (False, True)
    }
    rows = []
    for name, way in _WAYS.items():
        others = sorted(map(way, sides[False][1]), reverse=True)
        limit = others[int(_MARKED * len(others))] if others else -math.inf
        marked = {one.case.id for one in every if way(one) > limit}
        rows.append(Row(name, _shares_of(marked, sides), len(every), unknown))
    passing = _shares_of({one.case.id for one in every if one.passes}, sides)
    return Result(
        (
            *(Column("disputes, in sight, %"), Column("others, in sight, %")),
            *(Column("disputes, set apart, %"), Column("others, set apart, %")),
        ),
        (*rows, Row(_PASSES, passing, len(every), unknown)),
        (
            f"The limit of each way marks at most {_MARKED:.0%} of the others in sight.",
            "Each way is told which two passages are about the claim.",
        ),
    )


def _readings(bench: Bench, cases: Sequence[Disputed]) -> list[_Read]:
    judge = RefChecker(adapted(bench.model_of(_NAME)))
    asked = []
    for one in cases:
        pair = [one.passages[at] for at in one.pair]
        statement = _STATEMENT.format(one.question.rstrip("?？"))
        asked += [sample(one.claim, one.passages, one.question)]
        asked += [sample(one.claim, [text], one.question) for text in pair]
        asked += [sample(statement, [text], None) for text in pair]
    found = [done.value for done in bench.judged(_NAME, judge, asked)]
    of_cases = ((one, found[5 * at : 5 * at + 5]) for at, one in enumerate(cases))
    return [_read(one, of) for one, of in of_cases if not any(each.undetermined for each in of)]


def _read(case: Disputed, found: Sequence[Evaluation]) -> _Read:
    together, *alone = map(_shares, found)
    claims, statements = alone[:2], alone[2:]
    first = claims[0][ClaimLabel.ENTAILMENT] >= claims[1][ClaimLabel.ENTAILMENT]
    supporting, other = (0, 1) if first else (1, 0)
    words = beginnings(case.claim)
    return _Read(
        case,
        let_through(found[0]),
        together,
        claims[supporting][ClaimLabel.ENTAILMENT],
        claims[other][ClaimLabel.CONTRADICTION],
        statements[other][ClaimLabel.ENTAILMENT],
        len(words & beginnings(case.passages[case.pair[other]])) / max(1, len(words)),
    )


def _shares(found: Evaluation) -> Mapping[ClaimLabel, float]:
    """Return the probabilities of the claim that is supported least; Neutral if none is known."""
    known = [claim.probabilities for claim in found.claims if claim.probabilities]
    nothing = {label: float(label is ClaimLabel.NEUTRAL) for label in NLI_LABELS}
    return min(known, key=lambda shares: shares[ClaimLabel.ENTAILMENT], default=nothing)


def _shares_of(
    ids: set[str], sides: Mapping[bool, Sequence[Sequence[_Read]]]
) -> tuple[Figure | None, ...]:
    """Return which share of each side has one of these ids."""
    of_all = ([one.case.id for one in of] for of in (*sides[False], *sides[True]))
    return tuple(grouped_share([(at in ids, at) for at in of]) if of else None for of in of_all)


def _log_odds(share: float) -> float:
    share = min(max(share, 1 - _SURE), _SURE)
    return math.log(share / (1 - share))


TABLES = (
    Table(
        "disputes",
        "demur",
        "Whether readings of single passages tell claims that passages disagree about.",
        (),
        _made,
    ),
)
