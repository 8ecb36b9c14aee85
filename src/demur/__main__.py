"""The entry of the command line, which can say what is missing when its packages are."""

from __future__ import annotations

import sys
import traceback

_USAGE, _FAULT = 64, 70
_PACKAGES = ("typer", "rich", "click")


def main() -> None:
    """Run `demur` with the arguments of the process, and end it with the exit code."""
    try:
        from demur.cli import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] in _PACKAGES:
            sys.stderr.write(f"demur needs {error.name}. Run: pip install 'demur[cli]'\n")
            sys.exit(_USAGE)
        traceback.print_exc()
        sys.exit(_FAULT)  # Python's own 1 would mean that an answer failed
    sys.exit(run())


if __name__ == "__main__":
    main()
