"""Hold demur's own texts, which judges and rules are measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
"""The folder of the texts."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines.

    Raises:
        ValueError: Two rows have the same `id`.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ids = [row["id"] for row in rows if "id" in row]
    if len({*ids}) < len(ids):
        raise ValueError(f"{path} has an id twice; expected each row to have its own.")
    return rows
