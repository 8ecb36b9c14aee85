"""Write new files, and never replace a file that people may have worked on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demur._system import write_whole
from demur._text import replace_surrogates


def refuse_if_there(path: Path) -> None:
    """Refuse a path whose file exists, because people may have filled in labels.

    Raises:
        ValueError: The file exists, or its folder does not.
    """
    if path.exists():
        raise ValueError(f"{path} exists already: name a new file")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")


def write_new(path: Path, value: Any) -> None:
    """Write a value as JSON that people can read and edit.

    Raises:
        ValueError: The file exists already, or cannot be written.
    """
    refuse_if_there(path)
    text = replace_surrogates(json.dumps(value, ensure_ascii=False, indent=1))
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}") from error
