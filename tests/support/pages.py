"""The code of the documentation's pages, found as a reader of Markdown finds it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page."""

    language: str
    """The word after the fence, such as "python"."""
    text: str
    line: int
    """The number of its first line of text in the page, from 1."""
    section: str
    """The heading above it, of whatever level."""
    printed: str | None = None
    """The text of the next fence if that is "text" and nothing stands between."""


def fences(page: Path, *languages: str) -> list[Fence]:
    """Return the fenced blocks of a page in these languages (all without any), in order."""
    tokens = _tokens(page)
    found, section = [], ""
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            section = tokens[at + 1].content
        if token.type == "fence" and token.map:
            printed = None
            if at + 1 < len(tokens) and tokens[at + 1].info == "text":
                printed = tokens[at + 1].content
            line = token.map[0] + 2
            found.append(Fence(token.info.strip(), token.content, line, section, printed))
    return [fence for fence in found if not languages or fence.language in languages]


def indented(page: Path) -> list[int]:
    """Return the lines of a page at which code is indented in place of fenced."""
    return [token.map[0] + 1 for token in _tokens(page) if token.type == "code_block" and token.map]


def _tokens(page: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))


def run(page: Path, names: dict[str, Any] | None = None) -> Iterator[tuple[Fence, str]]:
    """Run the Python of a page in one namespace; yield each block with what it printed.

    What the page defines is put among `names`.

    Tracebacks and warnings name the page and its line.
    """
    known = {} if names is None else names
    known["__name__"] = "__main__"
    for fence in fences(page, "python"):
        code = compile("\n" * (fence.line - 1) + fence.text, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, known)  # noqa: S102  # our own pages
        yield fence, printed.getvalue()
