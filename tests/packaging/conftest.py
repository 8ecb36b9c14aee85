"""Build all distributions once for the tests that install them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from support.installed import (
    PROJECTS,
    Built,
    build,
    environment,
    install,
    interpreter_of,
    pip,
)

TOOLS = ("build", "twine", "hatchling>=1.27", "hatch-fancy-pypi-readme>=24.1")


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
            made.write_text(str(environment(folder, *TOOLS)))
    return Path(made.read_text())


@pytest.fixture(scope="session")
def built(
    tools: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> dict[str, Built]:
    """Return the wheel and the sdist of each distribution, by name."""
    folder = _shared(tmp_path_factory, worker_id) / "dist"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            for name in PROJECTS:
                (folder / name).mkdir(parents=True)
                build(tools, name, folder / name)
    return {
        name: Built(*(folder / name).glob("*.whl"), *(folder / name).glob("*.tar.gz"))
        for name in PROJECTS
    }


OLDEST = "3.10"


@pytest.fixture(scope="session")
def everything(
    built: dict[str, Built], tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Callable[[str], Path]:
    """Return a function that makes an environment with all distributions and returns its Python."""

    def made(version: str) -> Path:
        interpreter = interpreter_of(version)
        if interpreter is None:
            pytest.skip(f"NOT TESTED: Python {version} is not on this machine")
        folder = _shared(tmp_path_factory, worker_id) / f"python{version}"
        with FileLock(f"{folder}.lock"):
            done = folder / "python.txt"
            if not done.exists():
                files = {k: b.sdist if version == OLDEST else b.wheel for k, b in built.items()}
                core = f"{files.pop('demur')}[cli]"
                research = files.pop("demur-research")
                python = environment(
                    folder, core, *files.values(), "pooch", interpreter=interpreter
                )
                pip("--python", python, "check")
                install(python, "--no-deps", research)  # It requires torch, but starts without it.
                done.write_text(str(python))
        return Path(done.read_text())

    return made
