"""The README of this distribution, for the tests that do what it says."""

from __future__ import annotations

import re
from pathlib import Path

PATH = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    """Its examples in a language, in order."""
    text = PATH.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
