"""Test `demur score`: as a process that is killed, interrupted and resumed, and its output."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from demur import Evaluation, Sample, Usage, cli
from demur.cli import clusters
from demur.cli.methods import METHODS, Maker, Method
from support.commands import flat, write_rows
from support.evaluators import Scripted, undetermined
from support.openai_server import Answer, OpenAIServer, openai_server
from support.spawned import Spawned, spawned_demur
from support.waiting import NEVER, until

pytestmark = pytest.mark.slow

# -- as a process ----------------------------------------------------------------------------------


def _cities(path: Path, count: int) -> Path:
    rows = [
        {"id": f"row {at}", "answer": f"City{at} is in France.", "reference": f"City{at}, France."}
        for at in range(count)
    ]
    return write_rows(path, rows)


def _city(request: Mapping[str, Any]) -> str:
    found: list[str] = re.findall(r"City\d+", json.dumps(request["messages"]))
    return found[-1]


def _reply(request: Mapping[str, Any]) -> str:
    """Return claims if a request asks for claims, else labels."""
    reads_claims = "Entailment" in json.dumps(request["messages"])
    return "1. Entailment" if reads_claims else f'("{_city(request)}", "is in", "France")'


def _keys(file: Path) -> Counter[str]:
    lines = file.read_text().splitlines()[1:]
    return Counter(json.loads(line)["key"] for line in lines)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Return a function that serves a script to commands of this process and of others."""

    @contextlib.contextmanager
    def served(script: Any) -> Iterator[OpenAIServer]:
        with openai_server(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "k")
            yield server

    return served


def _command(file: Path, *options: str) -> list[str]:
    """Return a command that scores by RefChecker: two requests for each answer."""
    command = ["score", str(file), "--method", "refchecker", "--model", "openai:x"]
    return [*command, "--checker", "joint", *options]


def _started(server: OpenAIServer, folder: Path, command: list[str]) -> Spawned:
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    return spawned_demur(folder, *command, **environment)


@pytest.mark.smoke
@pytest.mark.skipif(os.name == "nt", reason="signals are others on Windows")
def test_killed_at_any_moment_it_loses_nothing_and_asks_little_again(
    tmp_path: Path, serve: Any, capsys: Any
) -> None:
    rows, at_once, kept = 20, 4, random.randint(0, 30)
    file, out = _cities(tmp_path / "cities.jsonl", rows), tmp_path / "cities.scores.jsonl"
    command = _command(file, "--max-concurrency", str(at_once))
    asked: Counter[str] = Counter()
    killed = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        asked[_city(request)] += 1
        return Answer(_reply(request), held=None if number < kept or killed.is_set() else NEVER)

    with serve(script) as server:
        process = _started(server, tmp_path, command)
        server.arrived(kept + random.randint(1, at_once))
        process.signal(signal.SIGKILL)
        assert process.end() == -signal.SIGKILL
        killed.set()
        assert cli.run([*command, "--json"]) == 0
    assert _keys(out) == {f"row {at}": 1 for at in range(rows)}
    again = {city: count - 2 for city, count in asked.items() if count > 2}
    assert len(asked) == rows
    assert sum(-(-count // 2) for count in again.values()) <= at_once
    summary = json.loads(capsys.readouterr().out)
    (figures,) = summary["figures"]
    assert (summary["rows"], figures["answers"], figures["mean"]) == (rows, rows, 1.0)
    assert figures["usage"]["calls"] == 2 * rows


@pytest.mark.skipif(os.name == "nt", reason="signals are others on Windows")
def test_an_interrupt_waits_for_no_reply_and_says_how_to_go_on(
    tmp_path: Path, serve: Any, capsys: Any
) -> None:
    file, out = _cities(tmp_path / "cities.jsonl", 12), tmp_path / "found.jsonl"
    command = _command(file, "-o", str(out), "--max-concurrency", "2")
    interrupted = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        held = _city(request) in ("City6", "City7") and not interrupted.is_set()
        return Answer(_reply(request), held=NEVER if held else None)

    with serve(script) as server:
        process = _started(server, tmp_path, command)
        server.arrived(2 * 6 + 2)
        until(lambda: len(out.read_text().splitlines()) == 7)
        assert cli.run(command) == 64  # Two processes on one file are refused.
        assert "another run writes" in " ".join(capsys.readouterr().err.split())
        process.signal(signal.SIGINT)
        assert process.end() == 130
        assert process.out == ""
        assert f"stopped: 6 of 12 are in {out}; the same command goes on" in process.err
        assert _keys(out) == {f"row {at}": 1 for at in range(6)}
        interrupted.set()
        before = len(server.requests)
        assert cli.run(command) == 0
        assert len(server.requests) - before == 2 * 6
    assert _keys(out) == {f"row {at}": 1 for at in range(12)}


# -- in this process -------------------------------------------------------------------------------


def _score(sample: Sample) -> Evaluation:
    """Score by the answer's length; an answer with "nothing" is undetermined."""
    if "nothing" in sample.answer:
        return undetermined("it says nothing")
    score = len(sample.answer) / 10
    return Evaluation(name="x", score=score, passed=score >= 0.5)


_COST = Usage(calls=2, input_tokens=1000, output_tokens=100, seconds=0.5)


def _any(options: Mapping[str, Any]) -> Callable[[Sample], str | None]:
    return lambda sample: None


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Register a method "scripted" of two evaluators, and return the options it was made with."""
    made: list[dict[str, Any]] = []

    def make(options: Mapping[str, Any], results: Path) -> Method:
        made.append(dict(options))
        if options.get("threshold") == 9:
            raise ValueError("threshold: expected less than 9")
        evaluators = {name: Scripted(script=_score, cost=_COST) for name in ("first", "second")}
        return Method(evaluators, dict(options))

    maker = Maker(("threshold",), _any, make, {"first": "one", "second": "two"})
    monkeypatch.setitem(METHODS, "scripted", maker)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"question": "Q1", "answers": {"good": "aaaaaaaa", "bad": "aaa"}},
        {"question": "Q2", "answers": {"good": "aaaa", "bad": "aaaa"}},
        {"question": "Q3", "answers": {"good": "aaaaaa", "bad": "aaaaaaa"}},
    ]
    return write_rows(path, rows)


def _run(*arguments: object) -> int:
    return cli.run(["score", "--method", "scripted", *map(str, arguments)])


@pytest.mark.usefixtures("told_at_once")
def test_the_summary_as_lines_and_as_json(file: Path, capsys: Any) -> None:
    assert _run(file, "--price-in", 2, "--price-out", 10) == 0
    out, err = capsys.readouterr()
    lines = [line.split("\t") for line in out.splitlines()]
    figures = dict(zip(lines[0], lines[1], strict=True))
    assert figures[""] == "first"
    counts = ("answers", "undetermined", "nothing to check")
    assert [figures[one] for one in counts] == ["6", "0", "0"]
    assert figures["mean score"] == f"{32 / 60:.4f}"
    assert figures["passed"] == "50.0% of 6"
    assert (figures["calls"], figures["tokens in"], figures["seconds"]) == ("12", "6,000", "3.0")
    assert figures["cost"] == f"{(6000 * 2 + 600 * 10) / 1e6:.4f}"
    compared = dict(zip(lines[3], lines[4], strict=True))
    assert compared[""] == "good > bad"
    assert (compared["wins"], compared["rows"], compared["ties"]) == ("33.3%", "3", "1")
    assert lines[-1] == [f"results: {file.with_name('rows.scores.jsonl')}"]
    assert "scoring" in err
    assert "12 of 12" in err
    assert "24 calls, 12,000 + 1,200 tokens, cost 0.0360" in err

    assert _run(file, "--json", "--price-in", 2, "--price-out", 0) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    summary = json.loads(out)
    assert (summary["rows"], summary["answers"]) == (3, 6)
    assert summary["results"] == str(file.with_name("rows.scores.jsonl"))
    first, _ = summary["figures"]
    assert (first["mean"], first["cost"]) == (pytest.approx(32 / 60), pytest.approx(0.012))
    above = summary["above"][0]
    assert (above["first"], above["other"], above["preference"]["wins"]) == ("good", "bad", 1)


@pytest.mark.usefixtures("told_at_once")
def test_undetermined_answers_end_with_2_and_are_told(file: Path, capsys: Any) -> None:
    with file.open("a") as more:
        more.write('{"question": "Q4", "answer": "nothing"}\n')
    assert _run(file) == 2
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split("\t")[:3] == ["first", "7", "1"]
    assert "2 undetermined, " in err
    assert _run(file) == 2
    assert _run(file, "--retry") == 2


def test_fields_limit_and_out(file: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "found.jsonl"
    assert _run(file, "--field", "answer=question", "--limit", 2, "-o", out) == 64
    file.write_text('{"question": "Q1", "x": "a", "y": "bb"}\n' * 3)
    assert _run(file, "--field", "answers=x,y", "--limit", 2, "-o", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["answers"] == 4
    keys = _keys(out)
    assert len(keys) == 4
    assert {key.partition(":")[2] for key in keys} == {"x", "y"}


def test_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: Any, capsys: Any
) -> None:
    def give(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    rows = b'{"answer": "abc"}\n{"answer": "abcdef"}\n'
    give(rows)
    assert _run("-") == 64
    assert "-o" in capsys.readouterr().err
    out = tmp_path / "found.jsonl"
    for _ in range(2):
        give(rows)
        assert _run("-", "-o", out) == 0
    assert [*_keys(out).values()] == [2, 2]  # Each row has a finding of each of the two evaluators.
    give(rows + rows)
    assert _run("-", "-o", out) == 64
    assert "standard input" in capsys.readouterr().err


def test_a_restart_and_a_cut_are_told(file: Path, capsys: Any) -> None:
    assert _run(file) == 0
    assert _run(file, "--threshold", 0.7) == 64
    assert "threshold was not given and is 0.7" in flat(capsys.readouterr().err)
    assert _run(file, "--threshold", 0.7, "--restart") == 0
    aside = file.with_name("rows.scores.jsonl.bak")
    assert f"the earlier results are in {aside}" in capsys.readouterr().err
    assert aside.exists()
    with file.with_name("rows.scores.jsonl").open("ab") as torn:
        torn.write(b'{"key": "x')
    assert _run(file, "--threshold", 0.7) == 0
    assert "torn line: 10 bytes were removed" in capsys.readouterr().err


def test_wrong_usage_ends_with_64(file: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    refchecker = ("--method", "refchecker", "--model", "openai:x")
    for arguments, said in (
        ([], "FILE"),
        (["gone.jsonl"], "cannot read gone.jsonl"),
        (["FILE", "--method", "guess"], "expected one of"),
        (["FILE", "--checker", "joint"], "--checker"),
        (["FILE", "--threshold", "9"], "expected less than 9"),
        (["FILE", "--field", "prompt"], "expected TARGET=FIELD"),
        (["FILE", "--field", "answers=good,worst"], "no field 'good'"),
        (["FILE", "--limit", "0"], "--limit"),
        (["FILE", "-o", "FILE"], "is the input itself"),
        (["FILE", "-o", "gone/found.jsonl"], "no folder gone"),
        (["FILE", *refchecker], "line 1: it has nothing to check the answer against"),
    ):
        assert _run(*[file if one == "FILE" else one for one in arguments]) == 64
        out, err = capsys.readouterr()
        assert out == ""
        assert said in flat(err)
        assert "Traceback" not in err
    assert [*file.parent.iterdir()] == [file]


def test_text_from_the_file_cannot_steer_the_terminal(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "rows.jsonl"
    names = {"a\x1b[31m": "aaaa", "b\u202e\x9b": "aa"}
    path.write_text(json.dumps({"answers": names}) + "\n")
    assert _run(path) == 0
    assert _run(path, "--json") == 0
    out = capsys.readouterr().out
    assert not set("\x1b\x9b\u202e") & set(out)
    assert json.loads(out.splitlines()[-1])["above"][0]["first"] == "a\x1b[31m"


# -- on a cluster (integrations/ray tests the rest) ------------------------------------------------


def test_without_demur_ray_the_option_says_what_to_install(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(clusters, "entry_points", lambda **named: [])
    assert _run(file, "--ray", "auto") == 64
    assert "pip install demur-ray" in flat(capsys.readouterr().err)
    assert not file.with_name("rows.scores.jsonl").exists()


def test_an_answer_in_the_words_of_a_refusal_states_nothing(tmp_path: Path, capsys: Any) -> None:
    contexts = ["Release 4.2 adds dark mode."]
    rows = [
        {"id": said, "question": "Who founded it?", "answer": said, "contexts": contexts}
        for said in ("nothing  FOR you", "So sad.", "Ada founded it.")
    ]
    out = tmp_path / "results.jsonl"
    command = ["score", str(write_rows(tmp_path / "rows.jsonl", rows)), "--method", "refchecker"]
    words = ["--refusal", "Nothing for you", "--refusal", "So sad."]
    cli.run([*command, "--model", "small", *words, "-o", str(out)])
    settings, *scored = map(json.loads, out.read_text().splitlines())
    assert settings["settings"]["refusals"] == ["Nothing for you", "So sad."]
    findings = {row["key"]: row["evaluation"]["label"] for row in scored if "key" in row}
    assert findings.pop("Ada founded it.") != "Abstain"
    assert {*findings.values()} == {"Abstain"}
