"""Start `demur-bench`."""

import os

# Judged texts stand between the same delimiters in every run, because other delimiters change a
# small model's answers a little. demur chooses them when it is imported.
os.environ.setdefault("DEMUR_SECRET", "demur-bench")

from demur.__main__ import run_as_process
from demur_research.commands import run


def main() -> None:
    """Run `demur-bench` with the arguments of the process, and end it with the exit code."""
    run_as_process(run)


if __name__ == "__main__":
    main()
