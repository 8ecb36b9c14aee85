"""`demur bench`: tables, JSON, and what it says of files that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demur.cli import run
from support.recorded import as_lines, biographies, dump, published


def test_phd_prints_a_row_for_each_method_matcher_and_domain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = published(tmp_path)
    code = run(["bench", "phd", "--data", str(data), "--records", str(records), "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    rows = json.loads(out)
    (one,) = [
        row
        for row in rows
        if (row["method"], row["matcher"], row["domain"]) == ("em", "published_em", "all")
    ]
    assert [one[name] for name in ("tp", "fp", "fn", "tn")] == [2, 0, 1, 2]
    assert (one["precision"], one["f1"]) == (100.0, 80.0)
    assert one["recall"] == pytest.approx(200 / 3)
    assert one["f1_over_published"] is None
    assert len({(row["method"], row["matcher"], row["domain"]) for row in rows}) == len(rows) == 44


def test_in_a_pipe_the_table_has_tabs_and_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = published(tmp_path)
    arguments = ["bench", "phd", "--data", str(data), "--records", str(records)]
    assert run([*arguments, "--matcher", "exact", "--percentage", "80"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert {line.count("\t") for line in lines} == {head.count("\t")}
    assert lines[4].split("\t")[:7] == ["em", "exact", "all", "2", "0", "1", "2"]


def test_selfcheck_is_judged_where_a_threshold_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = as_lines(tmp_path)
    arguments = ["bench", "phd", "--data", str(data), "--records", str(records), "--json"]
    assert run([*arguments, "--selfcheck-threshold", "0.1"]) == 0
    methods = {row["method"] for row in json.loads(capsys.readouterr().out)}
    assert "selfcheck-bertscore" in methods
    assert run(arguments) == 0
    methods = {row["method"] for row in json.loads(capsys.readouterr().out)}
    assert methods == {"qg", "em", "all-false", "lmvslm", "zero-shot"}


def test_wikibio_prints_shares_and_tells_what_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = biographies(tmp_path)
    where = records / "wiki_bio_qg_record.json"
    rows = json.loads(where.read_text(encoding="utf-8"))
    dump(where, [*rows, {**rows[0], "entity": "Else ", "claim": "Else."}])
    arguments = ["bench", "wikibio", "--data", str(data), "--records", str(records)]
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    (one,) = [row for row in json.loads(out) if row["matcher"] == "wikibio_name"]
    assert (one["passages"], one["rejected"], one["min_ratio"]) == (3, 2, 25.0)
    assert "1 of 4 passages have no record" in err
    assert "1 records are of passages that the data lacks: Else" in err
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "qg\twikibio_name\t3\t2\t66.67\t" in out


def test_the_table_fits_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "240")
    data, records = published(tmp_path)
    assert run(["bench", "phd", "--data", str(data), "--records", str(records)]) == 0
    out = capsys.readouterr().out
    assert "\t" not in out
    assert "published_qg" in out


@pytest.mark.parametrize(
    ("data", "records", "extra", "option", "told"),
    [
        ("none.json", ".", [], "--data", "cannot read"),
        ("bad.json", ".", [], "--data", "is not JSON"),
        ("list.json", ".", [], "--data", "row 1, id: Field required"),
        ("PHD_benchmark.json", "none", [], "--records", "cannot read"),
        ("PHD_benchmark.json", "empty", [], "--records", "holds no records"),
        ("PHD_benchmark.json", "list.json", [], "--records", "expected an id, or an entity"),
        ("PHD_benchmark.json", ".", ["--matcher", "x"], "--matcher", "expected one of exact"),
        ("PHD_benchmark.json", ".", ["--percentage", "101"], "--percentage", "100"),
    ],
    ids=["no file", "no JSON", "form", "no records", "folder", "record", "matcher", "range"],
)
def test_what_is_wrong_is_told_with_the_option(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    data: str,
    records: str,
    extra: list[str],
    option: str,
    told: str,
) -> None:
    published(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    dump(tmp_path / "list.json", [{"entity": "A", "answer": "A"}])
    arguments = ["--data", str(tmp_path / data), "--records", str(tmp_path / records)]
    assert run(["bench", "phd", *arguments, *extra]) == 64
    out, err = capsys.readouterr()
    assert out == ""
    said = " ".join(err.replace("│", " ").split())
    assert option in said
    assert told in said


def test_bench_alone_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench"]) == 64
    err = capsys.readouterr().err
    assert "phd" in err
    assert "wikibio" in err
