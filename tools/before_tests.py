"""Say how long the tests take, and which of them this machine cannot run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.browsers import executable


def lines() -> Iterator[str]:
    """Yield the lines of the announcement."""
    yield "make test takes 7 minutes on two slow cores: the quick tests, and those of the others"
    yield "that best show that demur works. `make test-all` runs all tests, in 30 minutes."
    if executable() is None:
        yield "SKIPPED: the tests marked `browser`. To run them:"
        yield "  apt-get install chromium-headless-shell"
    servers = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    if not (any(servers) or shutil.which("initdb")):
        yield "SKIPPED: the tests of a log in PostgreSQL. To run them: apt-get install postgresql"
    if not (Path(__file__).parents[1] / ".peers").is_dir():
        yield "SKIPPED: other libraries' calls in docs/migration.md. To run them, first:"
        yield "         .venv/bin/python -m peers.environments --all"
    yield "The tests marked `real` are skipped if the local model (1.1 GB) cannot be fetched."


def main() -> None:
    """Print the announcement to standard error."""
    for line in lines():
        print(f"tests: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
