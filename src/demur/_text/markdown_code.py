"""Find the code in a text with Markdown, where all readers of Markdown agree that it is code."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")
_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`~]*)")
# Fences in quotations, behind an item's marker or after tabs, and blocks of HTML.
_UNSURE = re.compile(
    r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*"
    r"(?:```[^`]*$|~~~|<(?:[a-zA-Z][a-zA-Z0-9-]*(?=[\s/>]|$)|[/!?]))"
)
_ITEM = re.compile(r" *(?:[-*+]|\d{1,9}[.)]) +(?=\S)")
_INDENTED = 4
"""With this many spaces in front, a line may be code, continue a paragraph, or belong to an
item."""
_INLINE_SIGN = re.compile(
    r"(?P<escaped>\\`)|\\[^\n]|(?P<address>://|[wW]{3}\.)|(?P<code>`+)"
    r"|\]\([^\s()<>\"'`]*\)|<[a-zA-Z/][^<>\"'`\n]*>|(?P<open>\]\(|<(?=[a-zA-Z/!?]))"
)
_APART = re.compile(r"[\s<]")


def code_in(text: str) -> list[tuple[int, int]]:
    """Return the spans of the code in a text with Markdown: between fences, or between backticks.

    Some text is code to one reader of Markdown and plain text to another. Such text does not count
    as code, because marks and addresses could hide in it. After a fence of this kind, nothing
    counts as code.
    """
    found: list[tuple[int, int]] = []
    lines = [match for match in _LINE.finditer(text) if match[0]]
    number = begin = 0
    while number < len(lines):
        line = lines[number]
        said = line[0].rstrip("\r\n")
        fence = _FENCE.fullmatch(said)
        if fence is None and not _UNSURE.match(said):
            number += 1
            if not said.strip():
                found += _between_backticks(text, begin, line.start()) or ()
                begin = line.end()
            continue
        before = _between_backticks(text, begin, line.start())
        found += before or ()
        above = lines[number - 1][0] if number else ""
        end = None
        if fence is not None and (before is not None or len(fence["indent"]) < _INDENTED):
            end = _closed_at(lines, number, fence, above)
        if end is None:
            return found
        found.append((line.start(), lines[end].end() - len(lines[end][0]) + _length(lines[end])))
        number, begin = end + 1, lines[end].end()
    return [*found, *(_between_backticks(text, begin, len(text)) or ())]


def _closed_at(
    lines: Sequence[re.Match[str]], number: int, fence: re.Match[str], above: str
) -> int | None:
    """Return the line that closes a fence; None if some readers see no fence or another end."""
    indent, run = len(fence["indent"]), fence["fence"]
    deep = indent >= _INDENTED
    if deep and above.strip():
        item = _ITEM.match(above)
        if item is None or not item.end() <= indent < item.end() + _INDENTED or run[0] == "~":
            return None
    for at in range(number + 1, len(lines)):
        said = lines[at][0].rstrip()
        inner = said.lstrip(" ")
        if inner and len(said) - len(inner) < indent:
            return None  # the list item ends here, and its code ends with it
        if inner.startswith(run) and not inner.strip(run[0]):
            same = len(said) - len(inner) == indent and (not deep or inner == run)
            return at if same else None
    return None  # some readers do not accept a fence that is not closed


def _length(line: re.Match[str]) -> int:
    return len(line[0].rstrip("\r\n"))


def _between_backticks(text: str, start: int, end: int) -> list[tuple[int, int]] | None:
    """Return the spans of the code in a paragraph; None if readers of Markdown may disagree."""
    found: list[tuple[int, int]] = []
    lines = text[start:end].splitlines()
    in_table = any("-" in line and not line.strip("|:- \t>") for line in lines)
    at, address, open_ended = start, -1, False
    while sign := _INLINE_SIGN.search(text, at, end):
        at = sign.end()
        address = at if sign["address"] else address
        open_ended = open_ended or bool(sign["open"])
        if sign["escaped"]:
            return None
        if sign["code"]:
            # The backtick may belong to a tag or an address: some readers take "http://a`b" as one.
            if open_ended or (address >= 0 and not _APART.search(text, address, sign.start())):
                return None
            length = len(sign["code"])
            closing = re.compile(rf"[^\r\n]*?(?<!`)`{{{length}}}(?!`)").match(text, at, end)
            if closing is None or (in_table and "|" in closing[0]):  # cells end before code does
                return None
            at = closing.end()
            found.append((sign.start(), at))
    return found
