"""Print what a change breaks in the signatures of demur's public names.

    python -m tools.api

Until a version is released (a tag `v...`), this informs. After that it fails.
"""

from __future__ import annotations

import subprocess
import sys

from tools.landed import ROOT, git, landed


def main() -> None:
    """Compare with the commit that landed last."""
    before = landed()
    if before is None:
        print("api: the commit that landed last is not in this history, so nothing is compared")
        return
    command = [sys.executable, "-m", "griffe", "check", "demur", "-s", "src", "-a", before]
    broken = subprocess.run(command, cwd=ROOT).returncode
    released = git("tag", "--list", "v*")
    if broken and not released:
        print("api: these names are not released yet, so this only informs")
    sys.exit(broken if released else 0)


if __name__ == "__main__":
    main()
