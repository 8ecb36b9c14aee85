"""Test the summary against figures by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from demur import Evaluation, Usage
from demur.scoring import Data, Summary, summarise
from demur.scoring.ledger import Ledger

Findings = dict[str, float | Evaluation]


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    made = Ledger()
    yield made
    made.close()


def _summary(ledger: Ledger, rows: list[dict[str, object]], findings: Findings) -> Summary:
    data = Data(Path("none"), "none")
    for number, row in enumerate(rows, start=1):
        ledger.add(data.row(number, json.dumps(row).encode()))
    for key, found in findings.items():
        evaluation = found if isinstance(found, Evaluation) else Evaluation(name="e", score=found)
        assert ledger.note(key, "e", evaluation)
    return summarise(ledger, ["e"])


def _row(id: str, *names: str) -> dict[str, object]:
    return {"id": id, "answers": dict.fromkeys(names, "text")}


def _error() -> Evaluation:
    return Evaluation(name="e", error="no reply")


def test_the_mean_and_its_interval_over_rows(ledger: Ledger) -> None:
    rows = [_row("a", "x", "y"), _row("b", "x"), _row("c", "x")]
    found = {"a:x": 0.2, "a:y": 0.4, "b:x": 0.9, "c:x": 0.5}
    (figures,) = _summary(ledger, rows, found).figures
    mean = (0.2 + 0.4 + 0.9 + 0.5) / 4
    excess = [0.6 - 2 * mean, 0.9 - mean, 0.5 - mean]
    half = 1.959964 * math.sqrt(sum(x * x for x in excess) * 3 / 2) / 4
    assert figures.mean == pytest.approx(mean, abs=1e-12)
    assert figures.interval == pytest.approx((mean - half, mean + half), abs=1e-12)


def test_of_one_row_there_is_no_interval_and_of_nothing_no_number(ledger: Ledger) -> None:
    (figures,) = _summary(ledger, [_row("a", "x", "y")], {}).figures
    assert (figures.answers, figures.mean, figures.interval) == (0, None, None)
    (figures,) = _summary(ledger, [], {"a:x": 0.2, "a:y": 0.4}).figures
    assert (figures.mean, figures.interval) == (pytest.approx(0.3), None)


def test_what_has_no_score_is_counted_and_left_out(ledger: Ledger) -> None:
    def judged(score: float, passed: bool) -> Evaluation:
        usage = Usage(calls=2, cached=1, input_tokens=30, output_tokens=4, seconds=0.5)
        return Evaluation(name="e", score=score, passed=passed, usage=usage)

    rows = [{"id": str(number), "answer": "a"} for number in range(5)]
    nothing = Evaluation(name="e", label="Abstain")
    found: Findings = {
        "0": judged(1.0, True),
        "1": judged(0.0, False),
        "2": judged(0.8, True),
        "3": _error(),
        "4": nothing,
    }
    (figures,) = _summary(ledger, rows, found).figures
    assert figures.answers == 5
    assert (figures.undetermined, figures.nothing_to_check) == (1, 1)
    assert figures.mean == pytest.approx(0.6)
    assert (figures.passed, figures.decided) == (2, 3)
    assert figures.usage == Usage(calls=6, cached=3, input_tokens=90, output_tokens=12, seconds=1.5)


def test_the_first_answer_is_compared_with_each_other_and_with_all(ledger: Ledger) -> None:
    rows = [
        _row("a", "good", "half", "bad"),
        _row("b", "good", "half", "bad"),
        _row("c", "good", "half", "bad"),
        _row("d", "good", "bad"),
        _row("e", "good"),
    ]
    found: Findings = {
        **{"a:good": 0.9, "a:half": 0.5, "a:bad": 0.1},  # The good answer is above both others.
        **{"b:good": 0.5, "b:half": 0.5, "b:bad": 0.4},  # The good answer ties with one.
        **{"c:good": 0.3, "c:half": _error(), "c:bad": 0.6},
        **{"d:good": 0.7, "d:bad": 0.2},
        "e:good": 0.1,
    }
    summary = _summary(ledger, rows, found)
    counts = {
        (above.first, above.other): (
            above.preference.wins,
            above.preference.ties,
            above.preference.losses,
            above.preference.missing,
        )
        for above in summary.above
    }
    assert counts == {
        ("good", "half"): (1, 1, 0, 1),
        ("good", "bad"): (3, 0, 1, 0),
        ("good", None): (2, 1, 0, 1),
    }
    assert (summary.rows, summary.answers) == (5, 12)


def test_a_finding_counts_once(ledger: Ledger) -> None:
    summary = _summary(ledger, [{"id": "a", "answer": "x"}], {"a": 0.25})
    assert not ledger.note("a", "e", Evaluation(name="e", score=1.0))
    assert summary.figures[0].mean == 0.25
    assert summary.above == ()  # Answers without names are not compared.
    assert not ledger.note("unknown", "e", Evaluation(name="e", score=1.0))
    assert not ledger.lacks("a", "e")
    assert ledger.lacks("a", "another")
