"""A file that somebody may already have worked on is never replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demur._jsonl import write_whole
from demur._text import replace_surrogates


def refuse_if_there(path: Path) -> None:
    """Say no to a file that is there: people may have filled in labels.

    Raises:
        ValueError: It is there, or its folder is not.
    """
    if path.exists():
        raise ValueError(f"{path} is there already: name a new file")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")


def write_new(path: Path, value: Any) -> None:
    """Write a value as JSON that people can read and edit.

    Raises:
        ValueError: The file is there already, or cannot be written.
    """
    refuse_if_there(path)
    text = replace_surrogates(json.dumps(value, ensure_ascii=False, indent=1))
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}") from error
