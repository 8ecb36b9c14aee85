"""Test how a comparison and its tables are made of a file of results, without a model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demur import Evaluation, Usage
from demur.comparing import Comparison, csv_table, markdown, read_comparison
from demur.comparing import cost_rows as costs
from demur.comparing import quality_rows as quality
from demur.scoring import ScoringError
from support.commands import write_rows

NOTHING = Evaluation(name="x", label="Abstain")
FAILED = Evaluation(name="x", error="the model failed", usage=Usage(calls=1, input_tokens=60))


def _scored(score: float, passed: bool | None = None) -> Evaluation:
    usage = Usage(calls=2, input_tokens=90, output_tokens=10, seconds=0.5)
    return Evaluation(name="x", score=score, passed=passed, usage=usage)


def _lines(found: dict[str, list[Evaluation]], labels: list[bool]) -> Iterator[dict[str, Any]]:
    about = {"name": "set", "model": "m", "unlabelled": 3, "unknown": 0}
    yield {"demur_scores": 1, "input": {"name": "set", "sha256": "x"}, "settings": {}}
    yield {"note": {"compared": about}}
    yield {"note": {"left_out": "gone", "why": "why"}}
    for at, label in enumerate(labels):
        yield {"note": {"answer": f"q{at}", "hallucinated": label, "group": f"g{at // 2}"}}
    for name, evaluations in found.items():
        for at, one in enumerate(evaluations):
            yield {"key": f"q{at}", "evaluator": name, "evaluation": one.model_dump(mode="json")}


def _write(path: Path, found: dict[str, list[Evaluation]], labels: list[bool]) -> Path:
    return write_rows(path, _lines(found, labels))


LABELS = [True, False] * 8
GOOD = [_scored(0.1 + at / 100 if wrong else 0.6 + at / 100, not wrong) for at, wrong in
        enumerate(LABELS)]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "found.jsonl"


def test_a_detector_that_tells_them_apart_has_perfect_figures_and_its_own_decisions(
    path: Path,
) -> None:
    found = read_comparison(_write(path, {"good": GOOD}, LABELS), prices=(1.0, 10.0))
    assert (found.name, found.model, found.unlabelled) == ("set", "m", 3)
    assert (found.answers, found.hallucinated, found.groups) == (16, 8, 8)
    assert found.left_out == {"gone": "why"}
    (one,) = found.detectors
    of = one.quality
    figures = (of.auroc, of.auprc, of.balanced_accuracy, of.f1, of.own_balanced_accuracy, of.own_f1)
    assert [figure.value for figure in figures] == [1.0] * 6
    assert [figure.interval for figure in figures] == [(1.0, 1.0)] * 6
    assert one.cost == {
        "calls": 2.0,
        "tokens": 100.0,
        "seconds": 0.5,
        "money": pytest.approx((90 + 100) / 1e6),
    }
    assert one.on_line


def test_what_is_undetermined_or_states_nothing_is_counted_and_never_scored(path: Path) -> None:
    # If undetermined evaluations counted as passes, these hallucinated answers would be missed.
    mixed = [FAILED if at % 4 == 0 else NOTHING if at == 1 else one for at, one in enumerate(GOOD)]
    found = read_comparison(_write(path, {"mixed": mixed}, LABELS))
    (one,) = found.detectors
    assert (one.answers, one.undetermined, one.nothing_to_check) == (16, 4, 1)
    assert (one.scored, one.hallucinated, one.decided) == (11, 4, 11)
    assert one.quality.auroc.value == 1.0
    assert one.quality.own_f1.value == 1.0
    # Undetermined evaluations still have costs.
    assert one.cost["calls"] == pytest.approx((4 * 1 + 11 * 2) / 16)
    assert one.cost["tokens"] == pytest.approx((4 * 60 + 11 * 100) / 16)


def test_nothing_but_undetermined_has_no_figures_and_is_on_no_line(path: Path) -> None:
    found = read_comparison(_write(path, {"none": [FAILED] * 16, "good": GOOD}, LABELS))
    good, none = found.detectors
    assert none.quality.auroc.value is None
    assert none.quality.own_f1.value is None
    assert [none.on_line, good.on_line] == [False, True]
    assert quality(found)[1] == ["none", "", *["–"] * 7]


def test_the_line_is_drawn_by_the_cost_that_is_asked_for(path: Path) -> None:
    def costing(usage: Usage) -> list[Evaluation]:
        return [one.model_copy(update={"usage": usage}) for one in GOOD]

    slow = costing(Usage(calls=1, input_tokens=10, seconds=9))
    quick = costing(Usage(calls=3, input_tokens=500, seconds=1))
    _write(path, {"slow": slow, "quick": quick}, LABELS)

    def on_line(**options: Any) -> list[str]:
        compared = read_comparison(path, **options)
        return [one.name for one in compared.detectors if one.on_line]

    assert on_line() == ["slow"]
    assert on_line(cost="calls") == ["slow"]
    assert on_line(cost="seconds") == ["quick"]
    assert on_line(cost="money", prices=(1.0, 1.0)) == ["slow"]
    assert on_line(cost="money") == []


def test_a_cost_that_the_endpoint_does_not_report_is_not_taken_for_nothing(path: Path) -> None:
    silent = [one.model_copy(update={"usage": Usage(calls=1, seconds=9)}) for one in GOOD]
    _write(path, {"good": GOOD, "silent": silent}, LABELS)
    found = read_comparison(path, prices=(1.0, 1.0))
    one = found.detectors[1]
    assert (one.cost["tokens"], one.cost["money"], one.on_line) == (None, None, False)
    assert costs(found)[1][-4:] == ["1.0", "–", "9.00", "–"]


def test_the_last_finding_and_the_last_label_count(path: Path) -> None:
    _write(path, {"good": GOOD}, [not label for label in LABELS])
    assert read_comparison(path).detectors[0].quality.auroc.value == 0.0
    with path.open("a") as file:
        for line in [*_lines({}, LABELS)][1:]:
            file.write(json.dumps(line) + "\n")
        again = {"key": "q0", "evaluator": "good", "evaluation": FAILED.model_dump(mode="json")}
        file.write(json.dumps(again) + "\n")
    (one,) = read_comparison(path).detectors
    assert one.quality.auroc.value == 1.0
    assert (one.answers, one.undetermined) == (16, 1)


def test_results_of_demur_score_are_compared_by_given_labels(path: Path) -> None:
    path.write_text('{"answer": "a"}\n')
    with pytest.raises(ScoringError, match="holds no results"):
        read_comparison(path)
    write_rows(path, (line for line in _lines({"good": GOOD}, LABELS) if "note" not in line))
    with pytest.raises(ScoringError, match="no answer has a label: give a file of labels"):
        read_comparison(path)
    given = {f"q{at}": label for at, label in enumerate(LABELS) if at != 5}
    found = read_comparison(path, given={**given, "q99": True})
    assert (found.answers, found.groups, found.unlabelled, found.unknown) == (15, 15, 1, 1)
    assert found.detectors[0].quality.auroc.value == 1.0


# -- tables ----------------------------------------------------------------------------------------


@pytest.fixture
def compared(path: Path) -> Comparison:
    weird = "a|b`<i>\u202e\n"
    noisy = [_scored((at * 7 % 16) / 16) for at in range(15)]
    _write(path, {"good": GOOD, weird: [*noisy, FAILED]}, LABELS)
    return read_comparison(path, prices=(1.0, 10.0))


def test_csv_has_all_digits_and_nothing_where_nothing_is_known(compared: Comparison) -> None:
    weird, good = csv.DictReader(io.StringIO(csv_table(compared)))
    assert (good["detector"], good["auroc"], good["on_pareto_line"]) == ("good", "1.0", "true")
    assert float(weird["auroc"]) == compared.detectors[0].quality.auroc.value
    low, high = compared.detectors[0].quality.auroc.interval or (None, None)
    assert (float(weird["auroc_low"]), float(weird["auroc_high"])) == (low, high)
    assert weird["own_f1"] == weird["own_f1_low"] == ""
    assert (weird["undetermined"], weird["scored"], weird["answers"]) == ("1", "15", "16")
    assert float(good["money_per_answer"]) == pytest.approx(190 / 1e6)


def test_markdown_has_both_tables_and_what_is_left_out(compared: Comparison) -> None:
    text = markdown(compared)
    assert "| good | ● | 1.000 | 1.000 to 1.000 |" in text
    assert "- gone: why" in text
    assert "without a label, which are left out: 3." in text
    assert "\u202e" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 8
    columns = [row.replace("\\|", "").count("|") for row in rows]
    assert len({*columns[:4]}) == len({*columns[4:]}) == 1
