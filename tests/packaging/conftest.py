"""Build all distributions once, and install them once in an environment of each Python.

By default only the wheels are built, and only this version of Python is tried. A release check
(`DEMUR_RELEASE=1`) builds the sdists too, and tries every supported Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from support.installed import (
    PROJECTS,
    Built,
    build_all,
    build_wheels,
    environment,
    install,
    interpreter_of,
    pip,
)

RELEASE = os.environ.get("DEMUR_RELEASE") == "1"
HERE = "{}.{}".format(*sys.version_info)
OLDEST = "3.10"
VERSIONS = sorted({OLDEST, "3.11", "3.12", "3.13", HERE}) if RELEASE else [HERE]
TOOLS = ("build", "twine") if RELEASE else ()
BACKEND = ("hatchling>=1.27", "hatch-fancy-pypi-readme>=24.1")
BESIDE = ("llama-index-llms-openai", "llama-index-embeddings-langchain")
"""What docs/llama-index.md asks for. It holds openai below 3, so only this Python has it."""

collect_ignore = [] if RELEASE else ["test_sdists.py"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of an environment on each Python that is tried."""
    if "version" in metafunc.fixturenames:
        metafunc.parametrize("version", VERSIONS, scope="session")


def _shared(factory: pytest.TempPathFactory, worker: str) -> Path:
    """Return a folder that all processes of this test run share."""
    base = factory.getbasetemp()
    return base if worker == "master" else base.parent


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the interpreter of an environment with the tools that build a release."""
    folder = _shared(tmp_path_factory, worker_id) / "tools"
    with FileLock(f"{folder}.lock"):
        made = folder / "python.txt"
        if not made.exists():
            made.write_text(str(environment(folder, *TOOLS, *BACKEND)))
    return Path(made.read_text())


@pytest.fixture(scope="session")
def built(
    tools: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> dict[str, Built]:
    """Return the wheel of each distribution, by name, and its sdist for a release check."""
    folder = _shared(tmp_path_factory, worker_id) / "dist"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            (build_all if RELEASE else build_wheels)(tools, folder)
    return {
        name: Built(*(folder / name).glob("*.whl"), *(folder / name).glob("*.tar.gz"))
        for name in PROJECTS
    }


@pytest.fixture(scope="session")
def environments(
    built: dict[str, Built], tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Callable[[str], Path]:
    """Return a function that makes an environment with all distributions and returns its Python."""

    def made(version: str) -> Path:
        interpreter = sys.executable if version == HERE else interpreter_of(version)
        if interpreter is None:
            pytest.skip(f"NOT TESTED: Python {version} is not on this machine")
        folder = _shared(tmp_path_factory, worker_id) / f"python{version}"
        with FileLock(f"{folder}.lock"):
            done = folder / "python.txt"
            if not done.exists():
                from_source = RELEASE and version == OLDEST
                files = {k: b.sdist if from_source else b.wheel for k, b in built.items()}
                extras = "cli,chroma,small" if version == HERE else "cli"
                core = f"{files.pop('demur')}[{extras}]"
                judge, research = files.pop("demur-judge"), files.pop("demur-research")
                # Here pip finds the judge, which an extra requires, as a reader's pip does who has
                # the wheels and no index with demur-judge.
                found = ("--find-links", judge.parent, *BESIDE)
                beside = found if version == HERE else (judge,)
                python = environment(
                    folder, core, *files.values(), "pooch", *beside, interpreter=interpreter
                )
                pip("--python", python, "check")
                install(python, "--no-deps", research)  # It requires torch, but starts without it.
                done.write_text(str(python))
        return Path(done.read_text())

    return made


@pytest.fixture
def everything(environments: Callable[[str], Path]) -> Path:
    """Return the interpreter of the environment of this Python."""
    return environments(HERE)
