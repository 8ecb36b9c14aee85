"""Read the page about this distribution and its README, for tests that follow them."""

from __future__ import annotations

from pathlib import Path

from support.pages import DOCS, fences

README = Path(__file__).parents[1] / "README.md"
PAGE = DOCS / "ray.md"


def blocks(path: Path, *languages: str) -> list[str]:
    """Return the examples in these languages, in order."""
    return [fence.text for fence in fences(path, *languages)]


def command(path: Path) -> list[str]:
    """Return the words of the example command that scores a file."""
    lines = [line for text in blocks(path, "console") for line in text.splitlines()]
    (found,) = (line for line in lines if line.startswith("demur score"))
    return found.split()
