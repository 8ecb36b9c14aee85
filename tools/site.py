"""Build the documentation's site into site/: `python -m tools.site`.

With --strict, Zensical ends with an error for a page, an anchor or a file that does not exist.
mkdocstrings only logs a name that cannot be found; here this is also an error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tools.landed import ROOT


def main() -> int:
    """Build the site, print the build's output, and return the exit code."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = re.sub(r"\x1b\[[\d;]*m", "", ended.stdout)  # colours, which it also writes to a pipe
    print(said)
    if ended.returncode == 0 and re.search(r"\b(ERROR|WARNING|Warning:)", said):
        print("The site was built, with the errors and warnings above: mend them.")
        return 1
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
