"""Make the peers' environments, one for each, from `peers/requirements/NAME.txt`.

    python -m peers.environments              lists them, and says which are there
    python -m peers.environments ragas nemo   makes these, if they are missing or stale

They are made in `.peers/`, with the interpreter that runs this module. The hash of each list is
kept, so that nothing is made twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_LISTS = Path(__file__).parent / "requirements"
_PLACE = _ROOT / ".peers"


class NoEnvironmentError(Exception):
    """Say that an environment cannot be made."""


def names() -> list[str]:
    """Return the names of the peers that have a list of requirements."""
    return sorted(path.stem for path in _LISTS.glob("*.txt"))


def python(name: str) -> Path:
    """Return the interpreter of a peer's environment, made first if it is missing or stale.

    Raises:
        NoEnvironmentError: pip could not install the packages on the list. The message ends with
            pip's last lines.
    """
    place = _PLACE / name
    interpreter, stamp = place / "bin" / "python", place / "made-from"
    wanted = _wanted(name)
    if stamp.exists() and stamp.read_text() == wanted and interpreter.exists():
        return interpreter
    print(f"{name}: making its environment", file=sys.stderr, flush=True)
    _run(name, sys.executable, "-m", "venv", "--clear", str(place))
    pip = (str(interpreter), "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    _run(name, *pip, "--upgrade", "pip")
    _run(name, *pip, "-r", str(_LISTS / f"{name}.txt"))
    stamp.write_text(wanted)
    return interpreter


def versions(name: str, *packages: str) -> dict[str, str]:
    """Return the version of each package in a peer's environment."""
    asked = "import json, sys; from importlib.metadata import version; "
    asked += "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    told = subprocess.run(
        [python(name), "-c", asked, *packages], check=True, capture_output=True, text=True
    )
    return dict(json.loads(told.stdout))


def _wanted(name: str) -> str:
    return hashlib.sha256(sys.version.encode() + (_LISTS / f"{name}.txt").read_bytes()).hexdigest()


def _run(name: str, *command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise NoEnvironmentError(f"{name}: this failed: {' '.join(command)}\n{last}")


def main() -> None:
    """Make environments, or list them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="*", help=f"some of {', '.join(names())}")
    parser.add_argument("--all", action="store_true", help="make all environments")
    options = parser.parse_args()
    if unknown := [name for name in options.name if name not in names()]:
        parser.error(f"expected some of {', '.join(names())}, got {', '.join(unknown)}")
    wanted = names() if options.all else options.name
    for name in wanted:
        print(f"{name}: {python(name)}")
    if not wanted:
        for name in names():
            stamp = _PLACE / name / "made-from"
            there = stamp.exists() and stamp.read_text() == _wanted(name)
            print(f"{name}: {'there' if there else 'not made'}")


if __name__ == "__main__":
    try:
        main()
    except NoEnvironmentError as error:
        sys.exit(str(error))
