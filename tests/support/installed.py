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
    "langchain-demur": ROOT / "integrations" / "langchain",
    "llama-index-evaluation-demur": ROOT / "integrations" / "llama-index",
    "demur-ray": ROOT / "integrations" / "ray",
    "demur-research": ROOT / "research",
}
"""The folder of each distribution."""

_UNREACHABLE = ("Failed to establish a new connection", "Name or service not known", "timed out")
_PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input"]
_OF_THIS_PROCESS = ("PYTHON", "OPENAI", "LANGSMITH", "RAY", "COV_")


@dataclass(frozen=True)
class Built:
    """Hold the two files of a distribution."""

    wheel: Path
    sdist: Path


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


def build(tools: Path, name: str, folder: Path) -> Built:
    """Build the sdist of a distribution in an empty folder, and the wheel from that sdist."""
    run(folder, tools, "-m", "build", "--no-isolation", "--outdir", folder, PROJECTS[name])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


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


def run(folder: Path, *command: str | Path, **variables: str) -> str:
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
    assert done.returncode == 0, done.stderr[-3000:] or done.stdout[-3000:]
    return done.stdout
