"""Test killed workers, nodes and drivers: nothing is lost, and few requests are repeated.

The server holds its replies until the test has killed what it kills, so the work is under way then
on any machine.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

import judges
from demur.cli import run
from demur.scoring import Progress, read_results
from demur_ray import score
from support.openai_server import Answer, openai_server
from support.spawned import spawned_demur
from support.waiting import NEVER


def _keys(out: Path) -> Counter[str]:
    return Counter(found.key for found in read_results(out))


def _every(count: int) -> dict[str, int]:
    return {f"row {at}": 1 for at in range(count)}


def _number(request: dict[str, Any]) -> int:
    return int(judges.city(request).removeprefix("City"))


def _again(asked: Counter[int], rows: int) -> int:
    """Return how many requests about the first rows were repeated; an answer takes two."""
    counts = [asked[at] for at in range(rows)]
    assert min(counts) >= 2
    return sum(counts) - 2 * rows


def test_killed_workers_and_a_node_that_goes_lose_nothing_and_little_is_asked_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill a worker, remove a node, and let the last answer kill each worker that scores it."""
    rows, at_once, first, second = 24, 6, 6, 14
    last, out = rows - 1, tmp_path / "scores.jsonl"
    given = judges.rows(rows)
    given[last]["answer"] = "deadly"
    killed, removed = threading.Event(), threading.Event()
    repeated: list[int] = []
    asked: Counter[int] = Counter()
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes(120)

    def script(request: dict[str, Any], number: int) -> Answer:
        at = _number(request)
        asked[at] += 1
        held = None if at < first else killed if at < second else removed
        return Answer(judges.reply(request), held=held)

    def do(now: Progress) -> None:
        if now.done in (first, second):
            # The result that is told makes room for another answer only afterwards.
            judges.wait(lambda: len([at for at in asked if at >= now.done]) >= at_once - 1)
        if now.done == first and not killed.is_set():
            os.kill(judges.workers()[0], signal.SIGKILL)
            killed.set()
        if now.done == second and not removed.is_set():
            repeated.append(_again(asked, second))
            cluster.remove_node(node, allow_graceful=False)
            removed.set()

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = score(
            ray.data.from_items(given),
            {"deadly": judges.deadly},
            out=out,
            workers=2,
            max_concurrency=at_once,
            progress=do,
        ).take_all()
    # Ray prints that the node is gone when it notices, which would be in another test's output.
    judges.wait(lambda: sum(one["Alive"] for one in ray.nodes()) == 1)
    assert Counter(row["key"] for row in found) == _keys(out) == _every(rows)
    undetermined = {row["key"]: row["error"] for row in found if row["finding"] == "undetermined"}
    assert undetermined == {
        f"row {last}": "3 workers died while they scored it, the last one while it did nothing else"
    }
    # The killed worker had 2 or 3 answers under way, of each of which one request had been made.
    # The workers of the node may have gone on until they noticed. Two of the last answer's workers
    # may have had 2 other answers each, of two requests.
    assert repeated[0] in (2, 3)
    assert _again(asked, last) <= repeated[0] + 2 * at_once + 8


# --- The command ----------------------------------------------------------------------------------


def test_the_command_goes_on_after_a_kill_and_after_an_interrupt(
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Kill a process, interrupt the command in this one, which is connected to Ray, and finish."""
    rows, out = 15, tmp_path / "rows.scores.jsonl"
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in judges.rows(rows)))
    asked: Counter[int] = Counter()
    answered = 5  # Rows from here on get no reply.
    # An answer at a time makes a worker a run.
    command = ["score", str(file), "--method", "refchecker", "--model", "openai:x", "--json"]
    command += ["--checker", "joint", "--ray", cluster.address, "--max-concurrency", "1"]

    def script(request: dict[str, Any], number: int) -> Answer:
        at = _number(request)
        asked[at] += 1
        return Answer(judges.reply(request), held=None if at < answered else NEVER)

    def under_way() -> bool:
        """Return whether all results are written, and the next answer is asked about."""
        written = out.read_bytes().count(b"\n") if out.exists() else 0
        return written > answered and asked[answered] > 0

    def interrupt() -> None:
        judges.wait(under_way)
        os.kill(os.getpid(), signal.SIGINT)

    # A job in the background of a shell ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    try:
        with openai_server(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            env = {name: os.environ[name] for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL")}
            process = spawned_demur(tmp_path, *command, **env)
            judges.wait(under_way)
            process.signal(signal.SIGKILL)
            assert process.end() == -signal.SIGKILL, process.err
            assert (process.out, _keys(out)) == ("", _every(answered))

            answered = 10
            capsys.readouterr()  # what Ray has printed, to which this process is connected
            threading.Thread(target=interrupt, daemon=True).start()
            assert run(command) == 130
            said = capsys.readouterr()
            assert "the same command goes on" in " ".join(said.err.split())
            assert (said.out, _keys(out)) == ("", _every(answered))

            answered = rows
            assert run(command) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert _keys(out) == _every(rows)
    summary = json.loads(capsys.readouterr().out)
    (figures,) = summary["figures"]
    assert (summary["rows"], figures["answers"], figures["undetermined"]) == (rows, rows, 0)
    assert figures["usage"]["calls"] == 2 * rows
    # Only the answers under way at the two ends are asked about again, which was one request each.
    assert _again(asked, rows) <= 2


def test_an_address_without_a_cluster_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(judges.rows(1)[0]) + "\n")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # as in a process of its own
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(["no"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        options = ["--method", "refchecker", "--model", "openai:x", "--ray", "127.0.0.1:1"]
        assert run(["score", str(file), *options]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no Ray cluster at '127.0.0.1:1'" in said
    assert not server.requests
