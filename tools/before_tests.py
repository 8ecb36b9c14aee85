"""Say how long the tests take, and which of them this machine cannot run.

Old interpreters read this file: it runs before there is an environment.
"""

import glob
import os
import shutil
import sys

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def lines():
    """Yield the announcement, a line each."""
    yield "make test takes 20 to 45 minutes on two cores. `make quick` takes 3: it runs those that"
    yield "need no model, start no processes and take less than a second."
    if not any(map(shutil.which, BROWSERS)):
        yield "SKIPPED: the tests marked `browser`. To run them: apt-get install chromium"
    if not (glob.glob("/usr/lib/postgresql/*/bin/initdb") or shutil.which("initdb")):
        yield "SKIPPED: the tests of a log in PostgreSQL. To run them: apt-get install postgresql"
    if not os.path.isdir(os.path.join(os.path.dirname(__file__), "..", ".peers")):
        yield "SKIPPED: other libraries' calls in docs/migration.md. To run them, first:"
        yield "         .venv/bin/python -m peers.environments --all"
    yield "The tests marked `real` are skipped if the local model (1.1 GB) cannot be fetched."


def main():
    """Print it."""
    for line in lines():
        sys.stderr.write("tests: {}\n".format(line))


if __name__ == "__main__":
    main()
