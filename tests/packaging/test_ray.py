"""Run the examples of docs/ray.md and of README.md with demur-ray as pip installs it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judges
from ray_readme import PAGE, README, blocks, command
from support.installed import run
from support.openai_server import openai_server

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

CODE = """
import os
import ray
ray.init("local", include_dashboard=False, num_cpus=1)
{page}
os.rename("scores", "scores of the page")
os.remove("scores.jsonl")
{readme}
"""


def test_the_command_and_the_examples_run_as_typed(everything: Path, tmp_path: Path) -> None:
    rows = judges.rows(6)
    (tmp_path / "answers").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "answers" / "rows.parquet")
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert command(PAGE) == command(README)
    local = ["--json", *("local" if word == "auto" else word for word in command(PAGE)[2:])]
    (page,), (readme,) = blocks(PAGE, "python"), blocks(README, "python")
    with openai_server(lambda request, number: judges.reply(request)) as server:
        here = {
            **{"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"},
            **{"NO_PROXY": "*", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"},
        }
        shown = run(tmp_path, everything, "-m", "demur", "score", *local, **here)
        run(tmp_path, everything, "-c", CODE.format(page=page, readme=readme), **here)
    (figures,) = json.loads(shown)["figures"]
    assert (figures["answers"], figures["undetermined"], figures["passed"]) == (6, 0, 4)
    for folder in ("scores of the page", "scores"):
        found = pq.read_table(tmp_path / folder).to_pylist()
        assert {row["key"]: row["passed"] for row in found} == {
            f"row {at}": at % 3 != 0 for at in range(6)
        }
