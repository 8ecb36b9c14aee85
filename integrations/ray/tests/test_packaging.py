"""The distribution as pip installs it, beside nothing but what it asks for.

The examples of docs/ray.md and of the README are run there too.

An environment of its own, made once for this module; packages come from the index that pip is set
up for.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judges
from ray_readme import PAGE, README, blocks, command
from support.installed import environment, run, wheel_of
from support.openai_server import openai_server

pytestmark = pytest.mark.packaging

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution, built."""
    return wheel_of(HERE, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with what the page has its reader install."""
    return environment(tmp_path_factory.mktemp("installed") / "venv", ROOT, wheel)


def test_the_wheel_holds_the_package_and_its_entry_point(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if ".dist-info/" not in name]
        (points,) = (n for n in file.namelist() if n.endswith("entry_points.txt"))
        assert "ray = demur_ray.command:cluster" in file.read(points).decode()
    sources = HERE / "src"
    here = [one for one in sources.rglob("*") if one.is_file() and "__pycache__" not in one.parts]
    assert {one.relative_to(sources).as_posix() for one in here} == set(names)
    assert "demur_ray/py.typed" in names


@pytest.mark.parametrize("page", [PAGE, README], ids=["page", "README"])
def test_the_command_and_the_example_run_as_typed(page: Path, python: Path, tmp_path: Path) -> None:
    rows = judges.rows(6)
    (tmp_path / "answers").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "answers" / "rows.parquet")
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (example,) = blocks(page, "python")
    local = ["--json", *("local" if word == "auto" else word for word in command(page)[2:])]
    begun = 'import ray\nray.init("local", include_dashboard=False, num_cpus=3)\n'
    with openai_server(lambda request, number: judges.reply(request)) as server:
        here = {
            **{"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"},
            **{"NO_PROXY": "*", "RAY_USAGE_STATS_ENABLED": "0"},
        }
        shown = run(tmp_path, python, "-m", "demur", "score", *local, **here)
        run(tmp_path, python, "-c", begun + example, **here)
    (figures,) = json.loads(shown)["figures"]
    assert (figures["answers"], figures["undetermined"], figures["passed"]) == (6, 0, 4)
    found = pq.read_table(tmp_path / "scores").to_pylist()
    assert {row["key"]: row["passed"] for row in found} == {
        f"row {at}": at % 3 != 0 for at in range(6)
    }
