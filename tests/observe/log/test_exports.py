"""Test the evaluations of a log as a table for spreadsheets."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.observe.log import EVERY, Filters, export_csv, open_log
from demur.observe.log.exports import COLUMNS
from support.logs import FORMS, RUNS, Where, written
from support.records import found, jsonl, scored


def _export(source: Where, out: Path, filters: Filters = EVERY) -> int:
    with open_log(source) as log:
        rows, damaged = export_csv(log, out, filters)
        assert damaged == ()
        return rows


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value).replace("\0", "\u2400")
    return f"'{text}" if isinstance(value, str) and text[:1] in tuple("=+-@\t\r\n") else text


@pytest.mark.parametrize("form", FORMS)
def test_a_table_has_a_row_for_each_evaluation(form: str, tmp_path: Path, request: Any) -> None:
    judged = [(one, number, found) for one in RUNS for number, found in one.judged()]
    source = written(form, tmp_path, RUNS, request)
    assert _export(source, tmp_path / "a.csv") == len(judged)
    assert (tmp_path / "a.csv").stat().st_mode & 0o077 == 0
    rows = _table(tmp_path / "a.csv")
    assert len(rows) == len(judged)
    for row, (one, number, evaluation) in zip(rows, judged, strict=True):
        assert tuple(row) == COLUMNS
        assert (row["run"], row["root"]) == (_cell(one.id), _cell(one.root))
        assert row["time"] == one.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert (row["name"], row["model"]) == (_cell(one.name), _cell(one.model))
        assert (row["outcome"], row["attempts"]) == (_cell(one.outcome), str(len(one.attempts)))
        assert row["attempt"] == str(number)
        assert row["question"] == _cell(one.attempts[number - 1].question)
        assert row["answer"] == _cell(one.attempts[number - 1].answer)
        assert row["verdict"] == one.attempts[number - 1].verdict
        assert (row["evaluator"], row["finding"]) == (_cell(evaluation.name), evaluation.finding)
        assert (row["score"], row["label"]) == (_cell(evaluation.score), _cell(evaluation.label))
        assert row["explanation"] == _cell(evaluation.explanation)
        assert row["error"] == _cell(evaluation.error)
        assert row["calls"] == str(evaluation.usage.calls)
        kinds = {kind for kind in row["failures"].split(", ") if kind}
        assert kinds == {str(kind.value) for kind in evaluation.failures}


@given(texts=st.lists(st.text(max_size=8), min_size=4, max_size=4))
def test_no_cell_is_a_formula(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("csv")
    answer, label, name, explanation = ("=" + texts[0], *texts[1:])
    evaluation = found(name, -0.5, False, label=label, explanation=explanation)
    _export(jsonl(folder / "a.jsonl", [scored(evaluation, answer=answer)]), folder / "a.csv")
    rows = _table(folder / "a.csv")
    assert len(rows) == 1
    assert rows[0]["answer"] == _cell(answer)
    assert rows[0]["answer"].startswith("'")
    assert rows[0]["score"] == "-0.5"
    texts_of = {key: cell for key, cell in rows[0].items() if key != "score"}
    assert not [cell for cell in texts_of.values() if cell.startswith(tuple("=+-@\t\r\n"))]
