"""Test killed workers, nodes and drivers: nothing is lost, and few requests are repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

import judges
from demur.scoring import Progress, read_results
from demur_ray import score
from support.openai_server import Answer, OpenAIServer, openai_server

pytestmark = pytest.mark.xdist_group("ray")


def _keys(out: Path) -> Counter[str]:
    return Counter(found.key for found in read_results(out))


def _every(count: int) -> dict[str, int]:
    return {f"row {at}": 1 for at in range(count)}


def _once(at: int, do: Callable[[], object]) -> Callable[[Progress], None]:
    """Return a progress callback that calls `do` once, when `at` findings are there."""
    waits = [do]

    def told(now: Progress) -> None:
        if now.done >= at and waits:
            waits.pop()()

    return told


def test_a_killed_worker_loses_nothing_and_little_is_asked_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, at_once = 60, 6
    dataset, out = ray.data.from_items(judges.rows(rows)), tmp_path / "scores.jsonl"
    asked: Counter[str] = Counter()

    def script(request: dict[str, Any], number: int) -> Answer:
        asked[judges.city(request)] += 1
        return Answer(judges.reply(request), delay=0.05)

    def kill() -> None:
        os.kill(judges.workers()[0], signal.SIGKILL)

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = score(
            dataset,
            {"refchecker": judges.checker()},
            out=out,
            workers=2,
            max_concurrency=at_once,
            progress=_once(15, kill),
        )
        assert found.count() == rows
        assert _keys(out) == _every(rows)
        assert not any(one.evaluation.undetermined for one in read_results(out))
        # Each answer takes two requests. At most both are repeated for an answer that the worker
        # had begun.
        again = sum(count - 2 for count in asked.values())
        assert 0 <= again <= 2 * (at_once // 2)
        # The killed worker's requests may still be at the server when other requests begin.
        assert server.most_at_once <= at_once + at_once // 2
        score(dataset, {"refchecker": judges.checker()}, out=out, workers=1)
        assert len(server.requests) == 2 * rows + again


def test_an_answer_that_kills_its_workers_is_undetermined_until_it_is_cured(
    cluster: Cluster, tmp_path: Path
) -> None:
    rows, cure, out = judges.rows(20), tmp_path / "cure", tmp_path / "scores.jsonl"
    rows[7]["answer"] = f"deadly unless {cure}"
    dataset = ray.data.from_items(rows)
    given = {"deadly": judges.deadly}
    found = score(dataset, given, out=out, workers=2, max_concurrency=8).take_all()
    assert Counter(row["key"] for row in found) == _every(20)
    undetermined = {row["key"]: row["error"] for row in found if row["finding"] == "undetermined"}
    assert undetermined == {
        "row 7": "3 workers died while they scored it, the last one while it did nothing else"
    }
    cure.touch()
    cured = score(dataset, given, out=out, workers=1, retry=True).take_all()
    assert Counter(row["key"] for row in cured) == _every(20)
    assert not any(row["finding"] == "undetermined" for row in cured)


def test_a_node_that_goes_takes_nothing_with_it(cluster: Cluster, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    out = tmp_path / "scores.jsonl"
    seen: list[int] = []

    def remove() -> None:
        seen.extend(judges.workers())
        cluster.remove_node(node, allow_graceful=False)

    score(
        ray.data.from_items(judges.rows(240)),
        {"patient": judges.patient},
        out=out,
        workers=4,
        max_concurrency=8,
        progress=_once(40, remove),
    )
    assert len(seen) == 4
    assert _keys(out) == _every(240)
    assert not any(one.evaluation.undetermined for one in read_results(out))


@pytest.mark.parametrize("workers", [1, 2])
def test_one_endpoint_is_never_asked_more_at_a_time_than_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Hold the bound with several workers, several models, and several claims in an answer."""
    bound, rows = 4, 16

    def script(request: dict[str, Any], number: int) -> Answer:
        return Answer(judges.reply(request), delay=0.03)

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = score(
            ray.data.from_items(judges.rows(rows)),
            {"cascade": judges.cascade(), "claims": judges.checker(), "single": judges.single()},
            out=tmp_path / "scores.jsonl",
            workers=workers,
            max_concurrency=bound,
        )
        assert found.count() == 3 * rows
        assert server.most_at_once == bound


# --- The command ----------------------------------------------------------------------------------


def _command(server: OpenAIServer, file: Path, address: str) -> subprocess.Popen[str]:
    env = {
        **{**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k", "NO_PROXY": "*"},
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    options = ["--method", "refchecker", "--model", "openai:x", "--checker", "joint", "--json"]
    there = ["--ray", address, "--max-concurrency", "4"]
    return subprocess.Popen(
        [sys.executable, "-m", "demur", "score", str(file), *options, *there],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _until(met: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    ends = time.monotonic() + 120
    while not met() and process.poll() is None:
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_the_command_goes_on_after_a_kill_and_after_an_interrupt(
    cluster: Cluster, tmp_path: Path
) -> None:
    rows, at_once = 40, 4
    file, out = tmp_path / "rows.jsonl", tmp_path / "rows.scores.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in judges.rows(rows)))
    asked: Counter[str] = Counter()

    def script(request: dict[str, Any], number: int) -> Answer:
        asked[judges.city(request)] += 1
        return Answer(judges.reply(request), delay=0.1)

    with openai_server(script) as server:
        for sent, wanted, said in (
            (signal.SIGKILL, -signal.SIGKILL, ""),
            (signal.SIGINT, 130, "the same command goes on"),
        ):
            before = len(server.requests)
            process = _command(server, file, cluster.address)
            _until(lambda: len(server.requests) >= before + 15, process)  # noqa: B023
            process.send_signal(sent)
            shown, err = process.communicate(timeout=60)
            assert process.returncode == wanted, err
            assert said in err
            assert shown == ""
            assert _keys(out)
        process = _command(server, file, cluster.address)
        shown, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert _keys(out) == _every(rows)
    summary = json.loads(shown)
    (figures,) = summary["figures"]
    assert (summary["rows"], figures["answers"], figures["undetermined"]) == (rows, rows, 0)
    assert figures["usage"]["calls"] == 2 * rows
    assert len(asked) == rows
    assert sum(max(0, count - 2) for count in asked.values()) <= 2 * 2 * at_once


def test_an_address_without_a_cluster_is_told(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(judges.rows(1)[0]) + "\n")
    with openai_server(["no"]) as server:
        process = _command(server, file, "127.0.0.1:1")
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "there is no Ray cluster at '127.0.0.1:1'" in " ".join(err.split())
    assert not server.requests
