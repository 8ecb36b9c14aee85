"""Test that only the owner can read files with users' texts, whichever part of demur wrote them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from demur import Evaluation, ExampleStore
from demur.cli.demo.play import save
from demur.observe import JSONLSink, SQLSink
from demur.observe.log import export_csv, open_log
from demur.views.report import write_report
from support.evaluators import Scripted
from support.records import jsonl, scored
from support.scoring import rows, run_on

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")


@pytest.fixture(autouse=True)
def _usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _logs(folder: Path) -> None:
    for sink in (SQLSink(folder / "a.sqlite"), JSONLSink(folder / "a.jsonl")):
        sink.write(scored())
        sink.close()


def _exports(folder: Path) -> None:
    with open_log(jsonl(folder / "log.jsonl", [scored()])) as log:
        export_csv(log, folder / "b.csv")
        write_report(log, folder / "b.html")
    (folder / "log.jsonl").unlink()  # The test wrote this file.


def _scores(folder: Path) -> None:
    run_on(rows(folder / "rows.jsonl", 2), folder / "rows.scores.jsonl")
    (folder / "rows.jsonl").unlink()  # The user wrote this file.


def _retried(folder: Path) -> None:
    data, out = rows(folder / "rows.jsonl", 2), folder / "rows.scores.jsonl"
    open_case = Evaluation(name="len", error="none")
    run_on(data, out, {"len": Scripted(script=lambda sample: open_case)})
    run_on(data, out, retry=True)
    data.path.unlink()


def _demo(folder: Path) -> None:
    save(folder / "state" / "demo.json", [])
    save(folder / "traces.json", [])


def _exemplars(folder: Path) -> None:
    store = ExampleStore(folder / "store", embedding=DeterministicFakeEmbedding(size=4))
    store.add("Who painted Guernica?", ["Pablo Picasso."], [1.0])
    store.export(folder / "exemplars.jsonl")
    store.close()


@pytest.mark.parametrize("write", [_logs, _exports, _scores, _retried, _demo, _exemplars])
def test_nobody_else_can_read_it(write: object, tmp_path: Path) -> None:
    write(tmp_path)  # type: ignore[operator]
    written = [path for path in tmp_path.iterdir() if path.stat().st_size]
    assert written
    for path in written:
        assert oct(_mode(path)) == oct(0o700 if path.is_dir() else 0o600), path.name


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    data, out = rows(tmp_path / "rows.jsonl", 2), tmp_path / "shared.jsonl"
    out.touch()
    out.chmod(0o640)
    open_case = Evaluation(name="len", error="none")
    run_on(data, out, {"len": Scripted(script=lambda sample: open_case)})
    assert _mode(out) == 0o640
    run_on(data, out, retry=True)
    assert _mode(out) == 0o640
    folder = tmp_path / "store"
    folder.mkdir(0o750)
    ExampleStore(folder, embedding=DeterministicFakeEmbedding(size=4)).close()
    assert _mode(folder) == 0o750
