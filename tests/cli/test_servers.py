"""Test the commands on a log in PostgreSQL: they work as on a file, and hide the password."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demur import Threshold, cli
from demur.observe import SQLSink
from support.logs import RUNS
from support.postgres_server import PASSWORD, QUOTED, USER, PostgresServer
from support.records import found, scored, sqlite

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new()


@pytest.fixture(autouse=True)
def _no_password(here: Path, capsys: Any) -> Iterator[None]:
    """Assert that neither the output nor a file or its name has the password."""
    yield
    said = "".join(capsys.readouterr())
    for path in here.iterdir():
        said += path.name + path.read_bytes().decode(errors="replace")
    for secret in (PASSWORD, QUOTED):
        assert secret not in said


def _run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    code = cli.run([*map(str, arguments)])
    out, err = capsys.readouterr()
    for secret in (PASSWORD, QUOTED):
        assert secret not in out + err
    return code, out, err


def test_a_report(url: str, here: Path, capsys: Any) -> None:
    SQLSink(url).write_all(RUNS)
    database = url.rpartition("/")[2]
    code, out, err = _run(capsys, "report", url)
    assert (code, out, err) == (0, f"{len(RUNS)} runs written to {database}.html\n", "")
    page = (here / f"{database}.html").read_text("utf-8")
    assert f"<h1>Answers in {url.replace(f'{USER}:{QUOTED}@', '')}</h1>" in page
    assert _run(capsys, "report", url, "--last", 5, "-o", "a.html")[0] == 0
    assert f"These are the newest 5 of {len(RUNS)} runs." in (here / "a.html").read_text("utf-8")


def test_a_threshold(url: str, here: Path, capsys: Any) -> None:
    runs = [
        scored(
            found(score=at / 100, passed=None, fingerprints={"model": "m"}),
            at=at,
            answer=f"Answer {at}.",
            metadata={"hallucinated": at < 60},
        )
        for at in range(100)
    ]
    SQLSink(url).write_all(runs)
    sqlite(here / "same.sqlite", runs)
    database = url.rpartition("/")[2]
    for where in (url, "same.sqlite"):
        assert _run(capsys, "calibrate", where, "--target", 0.1)[0] == 0
    made, same = (Threshold.load(f"{one}.threshold.json") for one in (database, "same"))
    assert made == same
    code, out, _ = _run(capsys, "calibrate", url, "--percentile", 5, "--json", "-o", "b.json")
    assert (code, json.loads(out)["file"]) == (0, url.replace(f"{USER}:{QUOTED}@", ""))


def test_what_stands_against_it_is_one_line(
    url: str, postgres: PostgresServer, capsys: Any
) -> None:
    wrong = url.replace(QUOTED, "anotherpassword")
    nobody = url.replace(f":{postgres.port}/", ":1/")
    for where, said in (
        (url, "has no log: no SQLSink was made for it yet"),
        (wrong, "password authentication failed"),
        (nobody, "Connection refused"),
        ("mysql://me:hush@host/db", "is not a log that demur can use"),
        ("postgresql://me:hush@here@host/db", "expected postgresql://"),
    ):
        for command in (
            ["log", "list", where],
            ["report", where, "-o", "x.html"],
            ["calibrate", where, "--percentile", "5", "-o", "x.json"],
        ):
            code, out, err = _run(capsys, *command)
            assert (code, out) == (2, ""), command
            assert said in re.sub(r"\s+", " ", err)
            assert "hush" not in err
            assert "anotherpassword" not in err
            assert "Traceback" not in err
