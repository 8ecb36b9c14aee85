"""Build distributions with pip, and install them in environments of their own.

Packages come from the index that pip is configured for. Tests have no network, so code that
needs the index belongs in fixtures with the scope of the module.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = {
    "demur": ROOT,
    "demur-judge": ROOT / "judge",
    "langchain-demur": ROOT / "integrations" / "langchain",
    "llama-index-evaluation-demur": ROOT / "integrations" / "llama-index",
    "demur-ray": ROOT / "integrations" / "ray",
    "demur-research": ROOT / "research",
}
"""The folder of each distribution."""

_UNREACHABLE = ("Failed to establish a new connection", "Name or service not known", "timed out")
_PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input"]
_OF_THIS_PROCESS = ("PYTHON", "OPENAI", "LANGSMITH", "RAY", "COV_")


_WHEELS = """
import os, sys
from hatchling import build
for project, folder in zip(sys.argv[1::2], sys.argv[2::2]):
    os.chdir(project)
    build.build_wheel(folder)
"""
"""A script that builds wheels as an installer asks the backend to, all in one process."""


@dataclass(frozen=True)
class Built:
    """Hold the files of a distribution."""

    wheel: Path
    sdist: Path | None = None


def pip(*arguments: str | Path) -> None:
    """Run pip. Skip the test if pip reaches no index, and fail it on any other error."""
    command = [sys.executable, *_PIP, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return
    said = done.stdout + done.stderr
    if any(sign in said for sign in _UNREACHABLE):
        pytest.skip(f"NOT TESTED, since pip reaches no index: {said[-300:]}")
    pytest.fail(f"pip {' '.join(command[len(_PIP) + 1 :])} failed:\n{said[-3000:]}")


def build_wheels(tools: Path, folder: Path) -> None:
    """Build the wheels of all distributions, each in the folder of its name."""
    pairs = [path for name, project in PROJECTS.items() for path in (project, folder / name)]
    run(_folders(folder), tools, "-c", _WHEELS, *pairs)


def build_all(tools: Path, folder: Path) -> None:
    """Build the sdist of each distribution in the folder of its name, and the wheel from it."""
    _folders(folder)
    for name, project in PROJECTS.items():
        run(folder, tools, "-m", "build", "--no-isolation", "--outdir", folder / name, project)


def _folders(folder: Path) -> Path:
    for name in PROJECTS:
        (folder / name).mkdir(parents=True)
    return folder


def environment(folder: Path, *what: str | Path, interpreter: Path | str = sys.executable) -> Path:
    """Make an environment, install something in it, and return its interpreter."""
    # The pip of this environment installs, because it is newer than the pip of a new environment.
    subprocess.run([interpreter, "-m", "venv", "--without-pip", folder], check=True)
    made = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install(made, *what)
    return made


def interpreter_of(version: str) -> Path | None:
    """Return a Python of this version on the path, of pyenv or of uv; None if there is none."""
    roots = [
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python")),
    ]
    places = [shutil.which(f"python{version}")]
    places += [str(one) for root in roots for one in sorted(root.glob(f"*/bin/python{version}"))]
    code = "import sys, venv, ssl; print('%d.%d' % sys.version_info[:2])"
    for place in filter(None, places):
        # An interpreter of pyenv may be on the path and still be disabled.
        done = subprocess.run([place, "-c", code], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return Path(place)
    return None


def install(python: Path, *what: str | Path) -> None:
    """Install something into an environment, leaving Python to compile modules when imported."""
    pip("--python", python, "install", "--no-compile", *what)


def run(folder: Path, *command: str | Path, status: int = 0, **variables: str) -> str:
    """Run a command that sees nothing of this checkout, and return what it prints."""
    here = {name: of for name, of in os.environ.items() if not name.startswith(_OF_THIS_PROCESS)}
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**here, "PYTHONNOUSERSITE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == status, done.stderr[-3000:] or done.stdout[-3000:]
    return done.stdout
