"""The README of this distribution, for the tests that do what it says."""

from __future__ import annotations

import re
from pathlib import Path

PATH = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    """Its Python examples, in order. They build on each other: the first has the index."""
    return re.findall(r"^```python\n(.*?)^```$", PATH.read_text(), re.DOTALL | re.MULTILINE)
