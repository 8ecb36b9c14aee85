"""Test `demur report`: what it writes, says and refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur import Threshold, cli
from support.commands import csv_of, flat
from support.logs import RUNS
from support.records import found, jsonl, scored, sqlite


def _run(*arguments: object) -> int:
    return cli.run(["report", *map(str, arguments)])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return sqlite(tmp_path / "runs.log", RUNS)


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("write", [jsonl, sqlite])
def test_it_says_where_the_page_is(write: Any, tmp_path: Path, capsys: Any) -> None:
    assert _run(write(tmp_path / "runs.log", RUNS)) == 0
    out, err = capsys.readouterr()
    assert out == f"{len(RUNS)} runs written to {tmp_path / 'runs.html'}\n"
    assert err == ""
    assert "<h1>Answers in runs.log</h1>" in (tmp_path / "runs.html").read_text("utf-8")


def test_a_page_that_is_there_is_kept_unless_told(log: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "a.html"
    out.write_text("before")
    assert _run(log, "-o", out) == 64
    assert "exists: replace it with --force" in flat(capsys.readouterr().err)
    assert out.read_text() == "before"
    assert _run(log, "-o", out, "--force", "--title", "Answers of <May>") == 0
    assert "<h1>Answers of &lt;May&gt;</h1>" in out.read_text("utf-8")


def test_all_options_reach_the_page(tmp_path: Path, capsys: Any) -> None:
    runs = [scored(found(score=at / 10), at=at) for at in range(10)]
    log = jsonl(tmp_path / "a.jsonl", runs)
    labels = csv_of(tmp_path / "labels.csv", {runs[9].id: True, "nobody": False})
    threshold = Threshold(
        on_abstain="pass",
        value=0.7,
        method="percentile",
        percentile=5,
        evaluator="RefChecker",
        samples=9,
        passed=9,
    )
    threshold.save(tmp_path / "t.json")
    given = ["--labels", labels, "--last", 4, "--price-in", 1, "--price-out", 2.5]
    assert _run(log, *given, "--threshold", tmp_path / "t.json") == 0
    out, err = capsys.readouterr()
    assert "the newest 4 of 10 runs (--last changes that) written to" in flat(out)
    assert "1 label belongs to runs that are not in the log" in flat(err)
    page = (tmp_path / "a.html").read_text("utf-8")
    for said in (
        "1 of 4 answers has a label: 1 hallucinated, 0 not.",
        "Threshold 0.7.",
        "Prices: 1 for a million tokens in, 2.5 for a million out",
        "These are the newest 4 of 10 runs.",
    ):
        assert said in page


def test_wrong_usage(log: Path, tmp_path: Path, capsys: Any) -> None:
    labels = csv_of(tmp_path / "labels.csv", {})
    for options, why in (
        (["--price-in", "1"], "given together"),
        (["--price-in", "inf", "--price-out", "1"], "expected a number, got inf"),
        (["--last", "0"], "--last"),
        (["-o", log], "exists: replace it with --force"),
        (["-o", log, "--force"], "is the log itself"),
        (["--labels", labels, "-o", labels, "--force"], "it would replace"),
    ):
        assert _run(log, *options) == 64
        assert why in flat(capsys.readouterr().err)
    assert not log.with_suffix(".html").exists()
    assert labels.read_text() == "id,hallucinated\n"


def test_what_cannot_be_read_or_written(log: Path, tmp_path: Path, capsys: Any) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_text("garbage\nmore\n")
    for arguments, why in (
        ([tmp_path / "nothing"], "cannot read"),
        ([Path()], "cannot read .: it is a folder"),
        (["x" * 300], "File name too long"),
        ([log, "-o", "x" * 300], "File name too long"),
        ([garbage], "is not a log"),
        ([log, "-o", tmp_path / "nowhere" / "a.html"], "cannot write"),
        ([log, "--threshold", garbage], "holds no threshold"),
        ([log, "--labels", garbage], "id"),
        ([log, "--labels", tmp_path / "nothing"], "cannot read"),
    ):
        assert _run(*arguments) == 2, arguments
        assert why in flat(capsys.readouterr().err)
    assert not list(tmp_path.glob("*.html"))
