"""Run the commands on damaged logs and data sets: no fault may occur, and intact parts are read."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from demur import Sample, cli
from demur.cli.methods import METHODS, Maker, Method
from demur.observe import Record
from support.damage import damaged_bytes, damaged_line  # the tests' modules, in no package
from support.records import found, jsonl, refuted, scored, several, sqlite

from .play import Judge
from .truth import Hung, Tally, time_limit

_LIMIT = 30.0
_FINE = (0, 1, 2, 64)
"""The exit codes for passed, failed, undetermined or unreadable, and wrong usage. The code 70, a
fault in demur, is missing."""


def attack(count: int, seed: int = 0) -> Iterator[Tally]:
    """Run the commands on `count` damaged files of each of three kinds."""
    draw = random.Random(seed)
    ours = Method({"ours": Judge()}, {})
    METHODS["ours"] = Maker((), lambda options: lambda sample: None, lambda *_: ours)
    with TemporaryDirectory() as folder:
        for kind in (_lines, _database, _rows):
            yield kind(count, draw, Path(folder))


def _runs() -> list[Record]:
    prints = {"evaluator": "RefChecker", "model": "m"}
    labelled = [
        scored(
            (refuted if at % 3 else found)(fingerprints=prints),
            at=at,
            metadata={"hallucinated": bool(at % 3)},
        )
        for at in range(12)
    ]
    return [*several(12), *labelled]


def _lines(count: int, draw: random.Random, folder: Path) -> Tally:
    tally = Tally("damaged: a log of JSON lines", "files")
    good = jsonl(folder / "good.jsonl", _runs()).read_bytes()
    ids = {line: json.loads(line)["id"] for line in good.splitlines()}
    path = folder / "log.jsonl"
    for _ in range(count):
        path.write_bytes(_spoiled(good, draw))
        left = {ids[one] for one in path.read_bytes().splitlines() if one in ids}
        with tally:
            _read(path, left, draw, tally)
    return tally


def _database(count: int, draw: random.Random, folder: Path) -> Tally:
    tally = Tally("damaged: a log of SQLite", "files")
    runs, path = _runs(), folder / "log.sqlite"
    good = sqlite(folder / "good.sqlite", runs).read_bytes()
    for _ in range(count):
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        if draw.random() < 0.5:
            path.write_bytes(damaged_bytes(good, draw))
            left = set()
        else:
            path.write_bytes(good)
            spoiled = draw.choice(runs)
            text = damaged_line(spoiled.as_json().encode(), draw).decode(errors="replace")
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                database.execute("update records set record = ? where id = ?", (text, spoiled.id))
            left = {one.id for one in runs} - {spoiled.id}
        with tally:
            _read(path, left, draw, tally)
    return tally


def _rows(count: int, draw: random.Random, folder: Path) -> Tally:
    tally = Tally("damaged: a data set to score", "files")
    samples = [
        Sample(question="q", answer=f"Answer {at}.", contexts=["c", "d"], reference="r")
        for at in range(8)
    ]
    good = b"".join(one.model_dump_json().encode() + b"\n" for one in samples)
    path, out = folder / "rows.jsonl", folder / "scores.jsonl"
    for _ in range(count):
        path.write_bytes(_spoiled(good, draw))
        for one in folder.glob("scores.jsonl*"):
            one.unlink()
        with tally:
            _run(["score", str(path), "--method", "ours", "-o", str(out)], tally)
            if out.exists():
                _run(["calibrate", str(out), "--best-f1", "--force"], tally)
    return tally


def _spoiled(content: bytes, draw: random.Random) -> bytes:
    """Return lines of JSON of which at least one is damaged."""
    if draw.random() < 0.4:
        return damaged_bytes(content, draw)
    lines = content.splitlines()
    for at in draw.sample(range(len(lines)), draw.randint(1, 3)):
        lines[at] = damaged_line(lines[at], draw)
    return b"\n".join(lines) + b"\n"


# --- The commands ---------------------------------------------------------------------------------


def _read(path: Path, left: set[str], draw: random.Random, tally: Tally) -> None:
    """List a log, which must show every intact record, and run another command on it."""
    told = _run(["log", "list", str(path), "--json", "-n", "1000"], tally)
    missing = {id for id in left if f'"{id}"' not in (told or "")}
    if missing and told is not None:
        tally.add("wrong", "a record that is whole is not listed", f"{len(missing)} of {len(left)}")
    out, page, table = (path.with_suffix(one) for one in (".threshold", ".html", ".csv"))
    table.unlink(missing_ok=True)
    others: Sequence[list[str]] = (
        ["log", "summary", str(path), "--by", "model,day"],
        ["log", "worst", str(path), "-n", "5"],
        ["log", "export", str(path), str(table), "--text", "danube"],
        ["report", str(path), "-o", str(page), "--force"],
        ["calibrate", str(path), "--best-f1", "-o", str(out), "--force"],
    )
    _run(draw.choice(others), tally)


def _run(arguments: list[str], tally: Tally) -> str | None:
    """Return what a command prints; None if it ends in a way that is not allowed."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with time_limit(_LIMIT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.run(arguments)
    except Hung:
        tally.add("hung", arguments[0], arguments)
        return None
    except BaseException as error:
        tally.add("wrong", f"{arguments[0]} raises {type(error).__name__}", error)
        return None
    if code not in _FINE:
        last = (err.getvalue().strip().splitlines() or [""])[-1]
        tally.add("wrong", f"{arguments[0]} ends with {code}: {last.partition(':')[0][-40:]}", last)
        return None
    return out.getvalue()
