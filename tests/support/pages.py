"""Find and run the code of the documentation's pages, with a parser of Markdown."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Fence:
    """Represent a fenced block of a page."""

    language: str
    """The word after the opening fence, such as "python"."""
    text: str
    line: int
    """The number of its first line of text in the page, counted from 1."""
    section: str
    """The nearest heading above it, of any level."""
    printed: str | None = None
    """The text of the next fence if its language is "text" and nothing is between the two."""


def fences(page: Path, *languages: str) -> list[Fence]:
    """Return a page's fenced blocks in these languages, or all of them without a language."""
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
    """Return the numbers of the lines at which code is indented instead of fenced."""
    return [token.map[0] + 1 for token in _tokens(page) if token.type == "code_block" and token.map]


@cache
def _tokens(page: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))


_SCORE = re.compile(r"(?<=score )\d\.\d\d")


def scores_apart(text: str) -> tuple[str, list[float]]:
    """Return a text without its scores, and the scores.

    The small judge computes with 8 bits, so processors of another kind give other hundredths.
    """
    return _SCORE.sub("?", text), [float(one) for one in _SCORE.findall(text)]


def run(page: Path, names: dict[str, Any] | None = None) -> Iterator[tuple[Fence, str]]:
    """Run the Python of a page in one namespace; yield each block with what it printed.

    The names that the page defines are added to `names`. Tracebacks and warnings name the page and
    its line.
    """
    known = {} if names is None else names
    known["__name__"] = "__main__"
    for fence in fences(page, "python"):
        code = compile("\n" * (fence.line - 1) + fence.text, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, known)  # noqa: S102  # The code is from pages of this repository.
        yield fence, printed.getvalue()
