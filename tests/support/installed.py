"""Distributions as pip builds and installs them, in environments of their own.

Packages come from the index that pip is set up for. In a test nothing leaves the machine: what
reaches the index belongs into fixtures of the module's scope.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

_UNREACHABLE = ("Failed to establish a new connection", "Name or service not known", "timed out")
_PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input"]
_OF_THIS_PROCESS = ("PYTHON", "OPENAI", "LANGSMITH", "RAY", "COV_")


def pip(*arguments: str | Path) -> None:
    """Run pip; skip where it reaches no index, and fail where anything else is wrong."""
    command = [sys.executable, *_PIP, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return
    said = done.stdout + done.stderr
    if any(sign in said for sign in _UNREACHABLE):
        pytest.skip(f"NOT TESTED, since pip reaches no index: {said[-300:]}")
    pytest.fail(f"pip {' '.join(command[len(_PIP) + 1 :])} failed:\n{said[-3000:]}")


def wheel_of(project: Path, folder: Path) -> Path:
    """Build the distribution of a project into an empty folder."""
    pip("wheel", "--no-deps", "--wheel-dir", folder, project)
    (made,) = folder.glob("*.whl")
    return made


def environment(folder: Path, *what: str | Path) -> Path:
    """Make an environment and install something there; its interpreter."""
    venv.create(folder, symlinks=os.name != "nt")
    made = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # By this environment's pip, which is newer than the one that a new environment brings.
    pip("--python", made, "install", *what)
    return made


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    """Run a command that sees nothing of this checkout; what it prints."""
    here = {name: of for name, of in os.environ.items() if not name.startswith(_OF_THIS_PROCESS)}
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**here, "PYTHONNOUSERSITE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:] or done.stdout[-3000:]
    return done.stdout
