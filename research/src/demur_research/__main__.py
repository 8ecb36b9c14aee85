"""The entry of `demur-bench`."""

from demur.__main__ import run_as_process
from demur_research.command import run


def main() -> None:
    """Run `demur-bench` with the arguments of the process, and end it with the exit code."""
    run_as_process(run)


if __name__ == "__main__":
    main()
