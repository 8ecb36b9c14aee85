"""The page about this distribution and its README, for the tests that do what they say."""

from __future__ import annotations

from pathlib import Path

from support.pages import DOCS, fences

README = Path(__file__).parents[1] / "README.md"
PAGE = DOCS / "llama-index.md"


def blocks(path: Path) -> list[str]:
    """Its Python examples, in order. They build on each other: the first has the index."""
    return [fence.text for fence in fences(path, "python")]
