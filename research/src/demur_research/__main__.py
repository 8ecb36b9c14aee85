"""The entry of `demur-bench`."""

import os

# The same delimiters around judged texts in every run: a small model answers a little otherwise
# when they change. They are chosen when demur is imported.
os.environ.setdefault("DEMUR_SECRET", "demur-bench")

from demur.__main__ import run_as_process
from demur_research.commands import run


def main() -> None:
    """Run `demur-bench` with the arguments of the process, and end it with the exit code."""
    run_as_process(run)


if __name__ == "__main__":
    main()
