"""Create files and folders for users' texts that only their owner may read.

A file or folder that already exists keeps its mode.
"""

from __future__ import annotations

import os
from pathlib import Path


def owner_only(path: str, flags: int) -> int:
    """Open a file, creating it with the mode 0600: `open(path, "wb", opener=owner_only)`."""
    return os.open(path, flags, 0o600)


def make_private_folder(path: Path) -> None:
    """Create a folder with the mode 0700 unless it exists; its parents get the usual mode.

    Raises:
        OSError: The folder cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
