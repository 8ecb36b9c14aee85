"""Test that a cluster finds what one process finds, from Ray's input to Ray's output."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray

import judges
from demur import DemurError, Evaluation, NeighborStore, RefChecker
from demur.evaluators import as_evaluator
from demur.scoring import Data, ScoringError, open_run, read_input, read_results
from demur_ray import score
from support.openai_server import Answer, OpenAIServer, openai_server

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Serve the judges' replies; the first ones come once as many are asked for as are allowed."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    full = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        if running.most_at_once >= AT_ONCE:
            full.set()
        time.sleep(0.02)  # Without it, requests beyond the bound might go unseen.
        return Answer(judges.reply(request), held=full)

    with openai_server(script) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


AT_ONCE = 4
"""The most requests at a time in the tests with a server."""


def _told(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation without its times and estimates."""
    told = evaluation.model_dump(mode="json")
    told["usage"].pop("seconds")
    for stage in told["details"].get("usage_by_stage", {}).values():
        stage.pop("seconds")
    for details in (told["details"], *told["details"].get("stages", ())):
        # The estimate counts tokens, also those of delimiters, which differ from process to
        # process.
        details.pop("estimate", None)
    return told


def _one_process(
    rows: list[dict[str, Any]], evaluators: Mapping[str, Any], folder: Path, prepare: Any = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Score rows in this process, and return the evaluations by key and evaluator."""
    file, out = folder / "rows.jsonl", folder / "one.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (
        read_input(Data(file, "rows")) as read,
        open_run(read, evaluators, out, settings={}) as run,
    ):
        if prepare is not None:
            run.prepare(prepare)
        run.score()
    return {(one.key, one.evaluator): _told(one.evaluation) for one in read_results(out)}


def _found(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    found = {
        (row["key"], row["evaluator"]): _told(Evaluation.model_validate_json(row["evaluation"]))
        for row in rows
    }
    assert len(found) == len(rows)
    return found


@pytest.mark.smoke
def test_from_parquet_to_parquet_the_same_as_in_one_process_and_within_the_bound(
    tmp_path: Path, server: OpenAIServer, chroma: str
) -> None:
    """Hold the bound with two workers, several models, several claims, and FEWL's neighbours."""
    rows = [{**row, "answers": {"good": row["answer"], "bad": "No."}} for row in judges.rows(4)]
    for row in rows:
        row.pop("answer")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    evaluators = {
        "refchecker": judges.checker(),
        "small": RefChecker("small"),
        "cascade": judges.cascade(),
        "single": judges.single(),
        "rouge": judges.rouge,
        "length": judges.length,
        "fewl": judges.fewl(chroma, "cluster"),
    }
    scored = score(
        ray.data.read_parquet(str(tmp_path / "rows.parquet")),
        evaluators,
        # There is a worker for each CPU, and Ray Data reads beside them.
        out=tmp_path / "scores.jsonl",
        max_concurrency=AT_ONCE,
    )
    assert server.most_at_once == AT_ONCE
    asked = Counter(
        judges.city(one)
        for one in server.requests
        if judges.reply(one).startswith(("1. City", "1. Wrong"))  # what only FEWL asks for
    )
    scored.write_parquet(str(tmp_path / "scores"))
    table = pq.read_table(tmp_path / "scores").to_pylist()
    fewl = judges.fewl(chroma, "one-process")
    here = {name: as_evaluator(one) for name, one in {**evaluators, "fewl": fewl}.items()}
    assert _found(table) == _one_process(rows, here, tmp_path, partial(fewl.fit, pairs=True))
    found = {(row["row"], row["answer"], row["evaluator"]): row for row in table}
    failing, passing = (found[f"row {at}", "good", "refchecker"] for at in (3, 1))
    assert (failing["finding"], failing["passed"], failing["error"]) == ("failed", False, None)
    assert (passing["finding"], passing["score"], passing["calls"]) == ("passed", 1.0, 2)
    # FEWL asks about each question once for answers and once for pairs, before anything is scored.
    assert asked == {f"City{at}": 2 for at in range(4)}
    details = [one["details"] for (_, name), one in _found(table).items() if name == "fewl"]
    assert {one["neighbors_used"] for one in details} == {3}
    spent = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert sum(line["spent"]["calls"] for line in spent if "spent" in line) == 8


def test_open_models_are_made_in_the_workers_and_no_key_is_written(tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Answer:
        return Answer(f"Incorrect API key provided: {judges.KEY}", status=401)

    dataset, out = ray.data.from_items(judges.rows(3)), tmp_path / "scores.jsonl"
    with openai_server(script) as server:
        with pytest.raises(DemurError, match="give a function that makes the evaluators"):
            score(dataset, judges.open_models(server.url), out=out)
        assert not server.requests
        found = score(dataset, partial(judges.open_models, server.url), out=out, workers=1)
        (why,) = {row["error"] for row in found.take_all()}
    assert "401" in why
    assert "[secret]" in why
    assert judges.KEY not in out.read_text()


def test_what_is_wrong_with_rows_is_told_before_a_worker_begins(tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    rows = [{"question": "Q", "text": "a"}, {"question": "Q", "text": None}]
    with pytest.raises(ScoringError, match="the dataset, row 1: it has no answer"):
        score(ray.data.from_items(rows), {"length": judges.length}, out=out)
    with pytest.raises(ScoringError, match=r"row 2: answer: .*, got null"):
        score(
            ray.data.from_items(rows), {"length": judges.length}, out=out, fields={"answer": "text"}
        )
    twice = ray.data.from_items([rows[0]] * 2)
    with pytest.raises(ScoringError, match="is on row 1 already"):
        score(twice, {"length": judges.length}, out=out, fields={"answer": "text"})
    assert not out.exists()


def test_stores_that_workers_cannot_share_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("chromadb")
    from demur import FEWL

    dataset, out = ray.data.from_items(judges.rows(1)), tmp_path / "scores.jsonl"
    folder = NeighborStore(tmp_path / "store")
    for store, why in (
        (None, "FEWL without neighbors"),
        (folder, "is a folder, which one process can open at a time"),
        (NeighborStore(), "lives in one process"),
    ):
        fewl = FEWL("local", similarity="rouge", neighbors=store)
        with pytest.raises(DemurError, match=f"(?s){why}.*chroma run"):
            score(dataset, {"fewl": fewl}, out=out)
    folder.close()


def test_workers_that_cannot_have_the_evaluators_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, out = ray.data.from_items(judges.rows(1)), tmp_path / "scores.jsonl"
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    checker = RefChecker("openai:x")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(DemurError, match="in a worker: openai:x cannot be used"):
        score(dataset, {"refchecker": checker}, out=out, workers=1)
    with pytest.raises(ValueError, match="leave none of the cluster's 2 to Ray Data"):
        score(dataset, {"length": judges.length}, out=out, workers=2, num_cpus=1)
    with pytest.raises(ValueError, match="max_concurrency must be at least 1"):
        score(dataset, {"length": judges.length}, out=out, max_concurrency=0)
