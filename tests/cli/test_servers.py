"""Test the commands on a log in PostgreSQL: they work as on a file, and hide the password."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from demur import Threshold, cli
from demur.observe import SQLSink
from support.commands import flat
from support.postgres_server import PASSWORD, QUOTED, USER, PostgresServer
from support.records import found, scored, sqlite

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new()


def _run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    code = cli.run([*map(str, arguments)])
    return (code, *capsys.readouterr())


def test_reports_and_thresholds_are_as_those_of_a_file_without_the_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
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
    sqlite(tmp_path / "same.sqlite", runs)
    named, database = url.replace(f"{USER}:{QUOTED}@", ""), url.rpartition("/")[2]

    assert _run(capsys, "report", url) == (0, f"100 runs written to {database}.html\n", "")
    assert f"<h1>Answers in {named}</h1>" in (tmp_path / f"{database}.html").read_text("utf-8")
    said = ""
    for where in (url, "same.sqlite"):
        code, out, err = _run(capsys, "calibrate", where, "--target", 0.1)
        assert code == 0
        said += out + err
    made, same = (Threshold.load(f"{one}.threshold.json") for one in (database, "same"))
    assert made == same
    code, out, _ = _run(capsys, "calibrate", url, "--percentile", 5, "--json", "-o", "b.json")
    assert (code, json.loads(out)["file"]) == (0, named)

    for path in tmp_path.iterdir():
        said += path.name + path.read_bytes().decode(errors="replace")
    for secret in (PASSWORD, QUOTED):
        assert secret not in said + out


def test_what_stands_against_it_is_one_line(
    url: str, postgres: PostgresServer, capsys: Any
) -> None:
    for where, said in (
        (url, "has no log: no SQLSink was made for it yet"),
        (url.replace(QUOTED, "hush"), "password authentication failed"),
        (url.replace(f":{postgres.port}/", ":1/"), "Connection refused"),
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
            assert said in flat(err)
            for secret in ("hush", PASSWORD, QUOTED, "Traceback"):
                assert secret not in err
