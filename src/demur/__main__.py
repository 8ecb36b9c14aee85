"""Start the command line, and say what to install if its packages are missing."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

_USAGE, _FAULT, _INTERRUPTED, _TERMINATED = 64, 70, 130, 143
_PACKAGES = ("typer", "rich", "click")


def main() -> None:
    """Run `demur` with the arguments of the process, and end the process with the exit code."""
    run_as_process(_run)


def run_as_process(run: Callable[[], int]) -> None:
    """Run a command line, and end the process with its exit code.

    SIGTERM ends a command as Ctrl-C does, so that the command can remove its temporary folders.
    """
    interrupted = _INTERRUPTED

    def end(number: int, frame: Any) -> None:
        nonlocal interrupted
        interrupted = _TERMINATED
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second SIGTERM ends the process at once
        raise KeyboardInterrupt

    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end)
        code = run()
    except KeyboardInterrupt:
        code = interrupted
    sys.exit(interrupted if code == _INTERRUPTED else code)


def _run() -> int:
    try:
        from demur.cli import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] in _PACKAGES:
            sys.stderr.write(f"demur needs {error.name}. Run: pip install 'demur[cli]'\n")
            return _USAGE
        traceback.print_exc()
        return _FAULT  # Python's own exit code 1 would mean that an answer failed
    return run()


if __name__ == "__main__":
    main()
