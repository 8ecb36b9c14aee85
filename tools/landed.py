"""Say with which commit a change is compared: the one that landed last.

Continuous integration may name it in the environment (`DEMUR_LANDED`). Elsewhere it stands in
`.ci/landed`, into which the first commit of a change writes the commit that it starts from. If that
is forgotten, more counts as changed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    """Return what git prints.

    Raises:
        subprocess.CalledProcessError: git failed.
    """
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def landed() -> str | None:
    """Return the commit that landed last, or None if this history does not have it."""
    named = os.environ.get("DEMUR_LANDED") or (ROOT / ".ci" / "landed").read_text("utf-8").strip()
    try:
        git("merge-base", "--is-ancestor", named, "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None
    return named
