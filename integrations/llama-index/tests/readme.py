"""Read the page about this distribution and its README, for tests that follow them."""

from __future__ import annotations

from pathlib import Path

from support.pages import DOCS, fences

README = Path(__file__).parents[1] / "README.md"
PAGE = DOCS / "llama-index.md"


def blocks(path: Path) -> list[str]:
    """Return the Python examples in order; the first makes the index that the others use."""
    return [fence.text for fence in fences(path, "python")]
