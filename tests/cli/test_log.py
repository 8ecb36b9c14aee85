"""Test `demur log`: what it prints, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demur import cli
from demur.cli import logged
from demur.observe import Record
from demur.observe.log import Filters, open_log, summarise
from support.commands import flat
from support.logs import RUNS, matches
from support.records import (
    BEGIN,
    HOSTILE,
    PASSAGE,
    WRONG,
    found,
    guarded,
    hostile,
    jsonl,
    refuted,
    scored,
    sqlite,
    undetermined,
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return sqlite(tmp_path / "a.sqlite", RUNS)


def _run(*arguments: object) -> int:
    return cli.run(["log", *map(str, arguments)])


def _rows(out: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(out), delimiter="\t", quoting=csv.QUOTE_NONE)]


def _ids(out: str) -> list[str]:
    return [row["id"] for row in _rows(out)]


# -- lists -----------------------------------------------------------------------------------------


def test_the_newest_twenty_are_listed_the_newest_last(log: Path, capsys: Any) -> None:
    assert _run("list", log) == 0
    out, err = capsys.readouterr()
    rows = _rows(out)
    assert [row["id"] for row in rows] == [one.id for one in RUNS[-20:]]
    assert err == ""
    for row, one in zip(rows, RUNS[-20:], strict=True):
        assert row["time"] == one.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert (row["verdict"], row["outcome"]) == (one.verdict, one.outcome or "-")
        assert (row["question"], row["answer"]) == (one.question, one.answer)


@pytest.mark.slow
def test_all_filters_reach_the_log(log: Path, capsys: Any) -> None:
    chosen: dict[tuple[str, ...], Callable[[Record], bool]] = {
        ("--evaluator", "FEWL"): lambda one: any(e.name == "FEWL" for _, e in one.judged()),
        ("--finding", "failed"): lambda one: matches(one, Filters(finding="failed")),
        ("--model", "llama3"): lambda one: one.model == "llama3",
        ("--text", "äpfel"): lambda one: "ÄPFEL" in one.answer,
        ("--since", "2026-11-21"): lambda one: one.time.day >= 21,
        ("--since", "2026-11-21T12:00+02:00"): lambda one: (
            one.time.timestamp() >= datetime(2026, 11, 21, 10, tzinfo=timezone.utc).timestamp()
        ),
        ("--until", "2026-11-20T18:00Z"): lambda one: one.time < BEGIN + timedelta(hours=8),
    }
    for options, fits in chosen.items():
        expected = [one.id for one in RUNS if fits(one)]
        assert 0 < len(expected) < len(RUNS), options
        assert _run("list", log, "-n", 999, *options) == 0
        assert _ids(capsys.readouterr().out) == expected, options
        assert _run("summary", log, "--json", *options) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == len(expected)


def test_ages_count_from_now(tmp_path: Path, capsys: Any) -> None:
    now = (datetime.now(timezone.utc) - BEGIN) / timedelta(seconds=1)
    runs = [scored(at=now - hours * 3600) for hours in (100, 30, 5, 0.1)]
    path = jsonl(tmp_path / "a.jsonl", runs)
    for age, expected in (("30m", 1), ("24h", 2), ("2d", 3), ("1w", 4), ("5s", 0)):
        assert _run("list", path, "--since", age) == 0
        assert len(_ids(capsys.readouterr().out)) == expected


def test_as_json_a_list_is_a_log_again(log: Path, tmp_path: Path, capsys: Any) -> None:
    assert _run("list", log, "--json", "-n", 999) == 0
    out = capsys.readouterr().out
    assert [Record.model_validate_json(line) for line in out.splitlines()] == RUNS
    assert out.isprintable() or {*out} >= {"\n"}
    assert not {*out} & {*"\x1b\x9b\u202e\u2028\x00"}


def test_an_empty_selection_and_an_empty_log_are_told(
    log: Path, tmp_path: Path, capsys: Any
) -> None:
    for command in ("list", "summary", "worst"):
        assert _run(command, log, "--model", "nobody") == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert "no run matches" in err
    assert _run("summary", jsonl(tmp_path / "a.jsonl", []), "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["runs"] == 0
    assert "no run is in it yet" in err


# -- summaries -------------------------------------------------------------------------------------


def test_a_summary_as_lines(tmp_path: Path, capsys: Any) -> None:
    runs = [
        scored(found(), found("FEWL", 0.9)),
        scored(refuted(), undetermined("FEWL"), at=60),
        guarded(refuted(), found(), at=86_400, model="llama3"),
    ]
    assert _run("summary", sqlite(tmp_path / "a.sqlite", runs), "--by", "model") == 0
    out = capsys.readouterr().out
    assert "3 runs from 2026-11-20 10:00:00 to 2026-11-21 10:00:00 UTC" in out
    assert "first answers  2 failed, 1 passed" in out
    assert "guards  1 recovered" in out
    table = [line for line in out.splitlines() if "\t" in line]
    rows = {(row["evaluator"], row["model"]): row for row in _rows("\n".join(table))}
    both = rows["RefChecker", "gpt-4o-mini"]
    assert (both["judged"], both["failed"], both["rate"]) == ("2", "1", "50.0%")
    assert both["95 %"] == "9.5%–90.5%"
    assert (both["mean"], both["calls"], both["tokens in"]) == ("0.6250", "4", "1,800")
    assert rows["FEWL", "gpt-4o-mini"]["undet."] == "1"
    assert rows["RefChecker", "llama3"]["calls"] == "4"
    assert "answering  4 calls" in out


def test_a_summary_as_json(log: Path, capsys: Any) -> None:
    assert _run("summary", log, "--json", "--by", "evaluator,day") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    told = json.loads(out)
    assert (told["log"], told["runs"]) == (str(log), len(RUNS))
    assert sum(told["verdicts"].values()) == len(RUNS)
    assert {group["day"] for group in told["groups"]} == {f"{one.time:%Y-%m-%d}" for one in RUNS}
    assert "model" not in told["groups"][0]
    for group in told["groups"]:
        decided = group["passed"] + group["failed"]
        rate = group["failed"] / decided if decided else None
        assert group["failure_rate"] == rate
        assert (group["interval"] is None) == (rate is None)


def test_a_summary_with_labels_says_what_users_got(tmp_path: Path, capsys: Any) -> None:
    runs = [guarded(), guarded(refuted(), outcome="abstained", at=1), scored(at=2)]
    path, labels = jsonl(tmp_path / "a.jsonl", runs), tmp_path / "labels.csv"
    rows = [(runs[0].id, 1, True), (runs[0].id, 2, False), (runs[1].id, 1, False)]
    lines = [f"{id},{attempt},{label}\n" for id, attempt, label in rows]
    labels.write_text("run,attempt,hallucinated\n" + "".join(lines))
    assert _run("summary", path, "--labels", labels) == 0
    out = capsys.readouterr().out
    table = out[out.index("users got") :]
    alone, with_guard = _rows(table)
    assert (alone["users got"], alone["right"], alone["wrong"]) == (
        "without the guard",
        *["1 (50.0%)"] * 2,
    )
    assert (with_guard["right"], with_guard["refused right"]) == ("1 (50.0%)", "1 (50.0%)")
    assert with_guard["wrong"] == "0 (0.0%)"
    labels.write_text(labels.read_text() + f"{runs[2].id},1,true\nnobody's,1,true\n")
    assert _run("summary", path, "--labels", labels, "--json") == 0
    shown = capsys.readouterr()
    assert "2 labels belong to no guard's call here" in shown.err
    told = json.loads(shown.out)
    assert told["users_got"]["with the guard"]["refused_right"] == 1
    assert _run("summary", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["users_got"] is None
    assert _run("summary", path, "--labels", tmp_path / "none.csv") == 2


# -- whole runs ------------------------------------------------------------------------------------


def test_the_worst_with_the_claims_against_them(tmp_path: Path, capsys: Any) -> None:
    runs = [scored(found()), guarded(at=1), scored(refuted(score=0.1), at=2, answer=WRONG)]
    path = jsonl(tmp_path / "a.jsonl", runs)
    assert _run("worst", path, "-n", 2) == 0
    out = capsys.readouterr().out
    assert out.index(runs[2].id) < out.index(runs[1].id)
    assert runs[0].id not in out
    assert f"reference 1 · rivers.txt: “{PASSAGE}”" in out
    assert out.index("1. Contradiction: ") < out.index("2. Neutral: The mayor of Ulm")
    assert "Entailment" not in out
    assert _run("worst", path, "-n", 1, "--json") == 0
    assert Record.model_validate_json(capsys.readouterr().out) == runs[2]
    run = scored(refuted(), refuted("FEWL", 0.02))
    assert _run("worst", jsonl(tmp_path / "b.jsonl", [run]), "--evaluator", "FEWL") == 0
    out = capsys.readouterr().out
    assert "FEWL" in out
    assert "RefChecker" not in out


def test_one_run_whole(tmp_path: Path, capsys: Any) -> None:
    run = guarded(refuted(), found(), tags=("prod",), metadata={"user": 7}, trace_id="ab" * 16)
    path = sqlite(tmp_path / "a.sqlite", [run, scored(at=9)])
    assert _run("show", path, run.id[:15]) == 0
    out = capsys.readouterr().out
    for told in (
        *(f"run {run.id}", "2026-11-20 10:00:00 UTC, rag, gpt-4o-mini", "tags  prod", "user  7"),
        *("Answer 1 of 2", f"answer  {WRONG}", "FAILED  Contradiction, score 0.25"),
        *("Answer 2 of 2  The guard asked for another answer", "told  - Not in the sources: The"),
        *("PASSED  score 1.00", "the guard: recovered  answer 2 is the last one"),
        *("6 calls, ", "of answering and judging; took 1.2 s"),
    ):
        assert told in out, told
    assert _run("show", path, run.id[:15], "--json") == 0
    assert Record.model_validate_json(capsys.readouterr().out) == run
    assert _run("show", path, "zz") == 2
    assert "no run whose id begins with 'zz'" in flat(capsys.readouterr().err)


# -- exports ---------------------------------------------------------------------------------------


def test_exports(log: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "failed.csv"
    assert _run("export", log, out, "--model", "llama3") == 0
    rows = sum(len([*one.judged()]) for one in RUNS if one.model == "llama3")
    assert f"{rows} rows written to" in flat(capsys.readouterr().out)
    with out.open(encoding="utf-8", newline="") as lines:
        assert len([*csv.DictReader(lines)]) == rows
    assert _run("export", log, out) == 64
    assert "exists: name a new file" in flat(capsys.readouterr().err)
    assert _run("export", log, tmp_path / "gone" / "a.csv") == 2
    assert "cannot write" in capsys.readouterr().err


# -- what goes wrong -------------------------------------------------------------------------------


def test_wrong_usage_ends_with_64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(Path("LOG"), RUNS[:2])
    for arguments, said in (
        ([], "Usage"),
        (["list"], "Missing argument 'LOG'"),
        (["show", "LOG"], "Missing argument 'ID'"),
        (["list", "LOG", "--finding", "bad"], "finding: expected one of passed, failed"),
        (["list", "LOG", "--since", "yesterday"], "expected a time such as 2026-11-20"),
        (["list", "LOG", "--since", "99999999999d"], "expected a time"),
        (["list", "LOG", "--until", "2026-13-01"], "expected a time"),
        (["list", "LOG", "--last", "-1"], "--last"),
        (["worst", "LOG", "-n", "0"], "--most"),
        (["list", "LOG", "--by", "model"], "No such option: --by"),
        (["summary", "LOG", "--by", "week"], "expected some of evaluator, model, day"),
        (["LOG"], "No such command"),
    ):
        assert _run(*arguments) == 64
        out, err = capsys.readouterr()
        assert out == ""
        assert said in flat(err)
        assert "Traceback" not in err
    assert [*tmp_path.iterdir()] == [tmp_path / "LOG"]


def test_a_log_that_cannot_be_read_ends_with_2(tmp_path: Path, capsys: Any) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no log\n")
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("create table x (y)")
    database.close()
    for name, said in (
        ("gone", "cannot read"),
        ("notes.txt", "is not a log: line 1"),
        ("other.db", "a database of another program"),
        ("", "cannot read"),
    ):
        assert _run("list", tmp_path / name) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in flat(err)
        assert "Traceback" not in err


def test_damaged_lines_are_told_and_all_else_is_shown(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", RUNS[:3])
    with path.open("ab") as file:
        file.write(b'{"id": \x1b[31m}\n' * 25 + RUNS[3].as_json().encode()[:-4])
    assert _run("list", path) == 0
    out, err = capsys.readouterr()
    assert _ids(out) == [one.id for one in RUNS[:3]]
    plain = flat(err)
    assert "line 4 is left out" in plain
    assert "line 23 is left out" in plain
    assert "line 24 is left out" not in plain
    assert "6 more are left out, to line 29" in plain
    assert "\x1b" not in err


# -- hostile text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_text_from_the_log_cannot_steer_the_terminal(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    if terminal:
        made = partial(Console, highlight=False, force_terminal=True, color_system=None, width=200)
        # A dotted path would not work, because there the command has the name of its module.
        monkeypatch.setattr(sys.modules["demur.cli.console"], "output", made)
    path = jsonl(tmp_path / "a.jsonl", [hostile(metadata={HOSTILE: HOSTILE}, id="run-1")])
    for command, *options in (
        ["list"],
        ["list", "--json"],
        ["summary", "--by", "model"],
        ["worst"],
        ["show", "run"],
    ):
        assert _run(command, path, *options) == 0
        out, err = capsys.readouterr()
        assert not {*out} & {*"\x1b\x07\x9b\u202e\u2028\x00\r"}
        assert "[bold]" in out or "\\" in out
        assert err == ""
        if [command, *options] == ["list"] and not terminal:
            assert out.count("\n") == 2


# -- terminals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 119, 120, 200])
def test_on_a_terminal_every_run_is_one_line_and_a_summary_has_room(
    tmp_path: Path, width: int
) -> None:
    to = io.StringIO()
    terminal = Console(
        file=to, force_terminal=True, width=width, color_system=None, highlight=False
    )
    with open_log(jsonl(tmp_path / "a.jsonl", RUNS)) as log:
        logged.show_list(terminal, RUNS)
        lines = to.getvalue().splitlines()
        assert len(lines) == len(RUNS) + 1
        assert max(map(len, lines)) <= width
        for line, one in zip(lines[1:], RUNS, strict=True):
            assert one.id.startswith(line.split()[0])
        to.truncate(0)
        totals = summarise(log, by=["day"])
        logged.show_totals(terminal, totals, ["day"])
    lines = to.getvalue().splitlines()
    if width < 80:
        return
    for group in totals.groups:
        if group.evaluator == "FEWL":
            low, high = group.failure.interval or (0, 0)
            rate = f"{low:.1%}–{high:.1%}" if group.failure.total else "-"
            assert any(all(cell in line for cell in (group.day, "FEWL", rate)) for line in lines)
