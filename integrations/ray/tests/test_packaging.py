"""The distribution as pip installs it, beside nothing but what it asks for.

An environment of its own, made once for this module; packages come from the index that pip is set
up for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judges
from ray_readme import blocks
from support.openai_server import openai_server

pytestmark = pytest.mark.packaging

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
UNREACHABLE = ("Failed to establish a new connection", "Name or service not known", "timed out")
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input"]


def pip(python: str | Path, *arguments: str) -> None:
    """Run pip; skip where it reaches no index, and fail where anything else is wrong."""
    done = subprocess.run([str(python), *PIP, *arguments], capture_output=True, text=True)
    if done.returncode == 0:
        return
    said = done.stdout + done.stderr
    if any(sign in said for sign in UNREACHABLE):
        pytest.skip(f"NOT TESTED: that demur-ray installs. pip reaches no index: {said[-300:]}")
    pytest.fail(f"pip {' '.join(arguments)} failed:\n{said[-3000:]}")


# What reaches the index is of the module's scope: in a test nothing leaves the machine.


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution, built."""
    folder = tmp_path_factory.mktemp("built")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(HERE))
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with what the README has its reader install."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, symlinks=os.name != "nt")
    made = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # By this environment's pip, which is newer than the one that a new environment brings.
    pip(sys.executable, "--python", str(made), "install", str(ROOT), str(wheel))
    return made


def run(folder: Path, url: str, *command: str | Path) -> str:
    """Run a command that sees nothing of this checkout; what it prints."""
    dropped = ("PYTHON", "OPENAI", "LANGSMITH", "RAY", "COV_")
    here = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={
            **{**here, "PYTHONNOUSERSITE": "1", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"},
            **{"NO_PROXY": "*", "RAY_USAGE_STATS_ENABLED": "0"},
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:] or done.stdout[-3000:]
    return done.stdout


def test_the_wheel_holds_the_package_and_its_entry_point(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if ".dist-info/" not in name]
        (points,) = (n for n in file.namelist() if n.endswith("entry_points.txt"))
        assert "ray = demur_ray.command:cluster" in file.read(points).decode()
    sources = HERE / "src"
    here = [one for one in sources.rglob("*") if one.is_file() and "__pycache__" not in one.parts]
    assert {one.relative_to(sources).as_posix() for one in here} == set(names)
    assert "demur_ray/py.typed" in names


def test_the_readmes_command_and_its_example_run_as_typed(python: Path, tmp_path: Path) -> None:
    rows = judges.rows(6)
    (tmp_path / "answers").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "answers" / "rows.parquet")
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command, example = blocks("console")[0].split(), blocks("python")[0]
    local = ["--json", *("local" if word == "auto" else word for word in command[2:])]
    begun = 'import ray\nray.init("local", include_dashboard=False, num_cpus=3)\n'
    with openai_server(lambda request, number: judges.reply(request)) as server:
        shown = run(tmp_path, server.url, python, "-m", "demur", "score", *local)
        run(tmp_path, server.url, python, "-c", begun + example)
    (figures,) = json.loads(shown)["figures"]
    assert (figures["answers"], figures["undetermined"], figures["passed"]) == (6, 0, 4)
    found = pq.read_table(tmp_path / "scores").to_pylist()
    assert {row["key"]: row["passed"] for row in found} == {
        f"row {at}": at % 3 != 0 for at in range(6)
    }
