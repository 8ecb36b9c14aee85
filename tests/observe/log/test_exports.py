"""Runs of a log as files: whole ones that are logs again, and tables for spreadsheets."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.observe import Record, SQLiteSink
from demur.observe.log import EVERY, ExportedLog, Filters, LogError, export, open_log, records
from demur.observe.log.exports import COLUMNS
from support.logs import RUNS
from support.records import HOSTILE, attempt, found, hostile, jsonl, run, scored, sqlite

FAILED = Filters(finding="failed")


def _export(source: Path, out: Path, filters: Filters = EVERY, **options: Any) -> ExportedLog:
    with open_log(source) as log:
        return export(log, out, filters, **options)


def _held(path: Path, filters: Filters = EVERY) -> list[Any]:
    with open_log(path) as log:
        return [*records(log, filters)]


@pytest.fixture(params=[jsonl, sqlite])
def source(request: Any, tmp_path: Path) -> Path:
    path: Path = request.param(tmp_path / "source", RUNS)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".sqlite", ".sqlite3", ".db"])
def test_what_is_exported_is_a_log_again(source: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out{suffix}"
    assert _export(source, out) == ExportedLog(len(RUNS), ())
    assert {*tmp_path.iterdir()} - {source, out} <= {*tmp_path.glob("source-*")}
    assert out.stat().st_mode & 0o077 == 0
    assert _held(out) == RUNS


def test_filters_and_the_newest(source: Path, tmp_path: Path) -> None:
    _export(source, tmp_path / "a.jsonl", FAILED)
    assert _held(tmp_path / "a.jsonl") == _held(source, FAILED)
    _export(source, tmp_path / "b.jsonl", last=3)
    assert _held(tmp_path / "b.jsonl") == RUNS[-3:]


@pytest.mark.parametrize("name", ["a.jsonl", "a.sqlite", "a.csv"])
def test_a_file_that_is_there_is_kept_unless_told(source: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    out.write_text("precious")
    with pytest.raises(FileExistsError, match=f"{name} is there already"):
        _export(source, out)
    assert out.read_text() == "precious"
    _export(source, out, force=True)
    assert out.stat().st_size > 1000


@pytest.mark.parametrize("name", ["a.jsonl", "a.sqlite"])
def test_what_was_fallbacked_is_put_back(tmp_path: Path, name: str) -> None:
    whole, fallback = RUNS[:40], jsonl(tmp_path / "fallback.jsonl", RUNS[30:])
    out = (sqlite if name == "a.sqlite" else jsonl)(tmp_path / name, whole)
    assert _export(fallback, out, append=True).runs == len(RUNS) - 30
    assert _held(out) == RUNS
    again = _export(fallback, out, append=True)
    assert again.runs == len(RUNS) - 30
    assert _held(out) == RUNS


def test_put_back_while_somebody_writes(tmp_path: Path) -> None:
    sink = SQLiteSink(tmp_path / "a.sqlite")
    sink.write(RUNS[0])
    _export(jsonl(tmp_path / "fallback.jsonl", RUNS[1:5]), tmp_path / "a.sqlite", append=True)
    sink.write(RUNS[5])
    assert _held(tmp_path / "a.sqlite") == RUNS[:6]


def test_a_database_that_stays_locked_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = SQLiteSink.write

    def third_fails(sink: SQLiteSink, record: Record) -> None:
        if record == RUNS[2]:
            raise sqlite3.OperationalError("database is locked")
        write(sink, record)

    monkeypatch.setattr(SQLiteSink, "write", third_fails)
    source = jsonl(tmp_path / "a.jsonl", RUNS)
    with pytest.raises(LogError, match=r"cannot write .*locked\. 2 runs were added before"):
        _export(source, tmp_path / "out.sqlite", append=True)
    assert _held(tmp_path / "out.sqlite") == RUNS[:2]
    with pytest.raises(LogError, match=r"cannot write .*locked"):
        _export(source, tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("out.txt", {}, r"expected a name that ends in \.jsonl"),
        ("out", {"force": True}, r"expected a name that ends in \.jsonl"),
        ("out.csv", {"append": True}, "a table is written anew"),
        ("log.jsonl", {"force": True}, "is the log itself"),
        ("log.jsonl", {"append": True}, "is the log itself"),
        ("used.sqlite", {"force": True}, "is in use"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, name: str, options: dict[str, Any], said: str
) -> None:
    log = jsonl(tmp_path / "log.jsonl", RUNS[:3])
    database = sqlite3.connect(sqlite(tmp_path / "used.sqlite", RUNS[:1]))
    with database:
        database.execute("delete from evaluations")  # so that there is a -wal
    before = {path: path.read_bytes() for path in (log, tmp_path / "used.sqlite")}
    with pytest.raises(ValueError, match=said):
        _export(log, tmp_path / name, **options)
    assert {path: path.read_bytes() for path in before} == before
    database.close()


def test_nothing_is_left_of_an_export_that_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        _export(jsonl(tmp_path / "a.jsonl", RUNS), tmp_path / "gone" / "b.jsonl")
    assert [*tmp_path.iterdir()] == [tmp_path / "a.jsonl"]


def test_damaged_runs_are_left_out_and_told(tmp_path: Path) -> None:
    source = sqlite(tmp_path / "a.sqlite", RUNS)
    with sqlite3.connect(source) as database:
        database.execute("update runs set record = 'x' where id = ?", (RUNS[4].id,))
    database.close()
    done = _export(source, tmp_path / "b.jsonl")
    assert done.runs == len(RUNS) - 1
    assert [one.place for one in done.damaged] == [f"run {RUNS[4].id}"]
    assert _held(tmp_path / "b.jsonl") == [*RUNS[:4], *RUNS[5:]]


# -- tables ----------------------------------------------------------------------------------------


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value).replace("\0", "\u2400")
    return f"'{text}" if isinstance(value, str) and text[:1] in tuple("=+-@\t\r\n") else text


def test_a_table_has_a_row_for_each_evaluation(source: Path, tmp_path: Path) -> None:
    _export(source, tmp_path / "a.csv")
    rows = _table(tmp_path / "a.csv")
    judged = [(one, number, found) for one in RUNS for number, found in one.judged()]
    assert len(rows) == len(judged)
    for row, (one, number, evaluation) in zip(rows, judged, strict=True):
        assert tuple(row) == COLUMNS
        assert row["run"] == one.id
        assert row["time"] == one.time.isoformat()
        assert (row["model"], row["outcome"]) == (_cell(one.model), _cell(one.outcome))
        assert row["attempt"] == str(number)
        assert row["answer"] == _cell(one.attempts[number - 1].answer)
        assert row["evaluator"] == _cell(evaluation.name)
        assert row["finding"] == evaluation.finding
        assert row["score"] == _cell(evaluation.score)
        assert row["error"] == _cell(evaluation.error)
        assert row["calls"] == str(evaluation.usage.calls)


def test_an_answer_that_nobody_judged_has_a_row_too(tmp_path: Path) -> None:
    bare = run(attempt(verdict="abstained"))
    _export(jsonl(tmp_path / "a.jsonl", [bare]), tmp_path / "a.csv")
    (row,) = _table(tmp_path / "a.csv")
    assert (row["run"], row["verdict"], row["evaluator"]) == (bare.id, "abstained", "")


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


def test_hostile_text_stays_in_its_cell(tmp_path: Path) -> None:
    _export(jsonl(tmp_path / "a.jsonl", [hostile(), scored(at=1)]), tmp_path / "a.csv")
    rows = _table(tmp_path / "a.csv")
    assert [row["answer"] for row in rows[:2]] == [_cell(HOSTILE)] * 2
    assert "\u2400" in rows[0]["answer"]  # of NUL, which spreadsheets end a text at
    assert isinstance(RUNS[0], Record)
    assert len(rows) == 3
