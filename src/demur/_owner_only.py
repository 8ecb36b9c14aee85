"""Files and folders of users' texts, for their owner only; what is there keeps its mode."""

from __future__ import annotations

import os
from pathlib import Path


def opened(path: str, flags: int) -> int:
    """Open a file; one that is made has the mode 0600: `open(path, "wb", opener=opened)`."""
    return os.open(path, flags, 0o600)


def make_folder(path: Path) -> None:
    """Make a folder with the mode 0700, unless it is there; those above it as usual.

    Raises:
        OSError: It cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
