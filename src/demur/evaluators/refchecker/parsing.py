"""Read triplets that the extractor wrote, without ever evaluating them as code.

There is a result for any string. It distinguishes claims that could not be read from a reply
without claims.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from demur.runtime.prompting import as_written

Triplet = tuple[str, str, str]

_CLOSING = {'"': '"', "“": "”", "”": "”", "'": "'", "‘": "’", "«": "»", "「": "」"}
_BULLET = re.compile(r"\s*(?:[-*•–]\s+|\(?\d{1,4}[.):]\s+|#+\s+)?")
_OPENING = "[" + "".join(_CLOSING) + "]"
_QUOTED_GROUP = re.compile(rf"[(\[]\s*{_OPENING}")
_QUOTED_END = re.compile(r"[\"”'’»」]\s*[)\]]")
_BETWEEN_GROUPS = re.compile(r"[\s,;.)\]]*(?:and\s+)?")
_GROUP_ENDS = re.compile(r"\s*[)\]][\s,;.)\]]*(?:and\s+)?(?=[(\[]|$)")
# An element ends before another quoted element, or before a bare one without quotation marks.
_ELEMENT_ENDS = {
    sign: re.compile(rf"\s*(?:$|,\s*(?:{_OPENING}|[^{sign},)\]]*(?:[,)\]]|$)))")
    for sign in set(_CLOSING.values())
}
# The exact form that the prompt asks for, which can be read without guessing.
_WELL_FORMED = re.compile(r'\("([^"\\]+)", "([^"\\]+)", "([^"\\]+)"\)')
_FENCE = re.compile(r"^[^\S\n]*```\w*[^\S\n]*$", re.MULTILINE)
# A line that can mean nothing else. "No claims were made by the firm" is a claim.
_ABSTAINS = re.compile(
    r"""\W*(?:none|n/?a|abstain)\W*
    |\W*(?:there\ (?:are|is)\ |(?:the|this)\ (?:answer|text|response)\ (?:contains|states)\ )?
    no\ (?:(?:factual|checkable|verifiable)\ )?(?:claims?|triplets?|triples?|facts?|statements?)
    (?:\ (?:found|present|given|stated|made|here)|\ to\ (?:extract|list|check)
    |\ (?:can|could)\ be\ (?:found|extracted|listed))?
    (?:(?:\ (?:are|were)\ (?:found|present|given|stated|made))?
    \ (?:in|from)\ (?:the|this)\ (?:answer|text|response))?
    [^\w(]*(?:\([^()]{0,300}\)\W*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_PLACEHOLDERS = ("subject", "predicate", "object")


@dataclass(frozen=True)
class Extracted:
    """Hold the claims in a reply of the extractor."""

    triplets: tuple[Triplet, ...] = ()
    abstained: bool = False
    """Whether the reply says that there are no claims."""
    broken: bool = False
    """Whether a claim begins in the reply and cannot be read to its end."""

    @property
    def readable(self) -> bool:
        """Return whether the whole reply could be understood."""
        return not self.broken and bool(self.abstained or self.triplets)


def parse_triplets(reply: str) -> Extracted:
    """Read triplets from lines of `("subject", "predicate", "object")`, one or more on a line.

    The function also reads these forms: brackets for parentheses; single, typographic or no quotes;
    bullets and numbers before a line; `subject | predicate | object`; a JSON list of lists, or of
    objects with these three keys. Two elements are a triplet without an object. Elements after the
    third belong to the object. A line that does not begin like a triplet counts as a remark.
    """
    text = _FENCE.sub("", as_written(reply))
    parsed: list[Triplet] = []
    broken = False
    from_json = _json_triplets(text)
    if from_json is not None:
        parsed = from_json
    else:
        for line in text.splitlines():
            triplets, whole = _line_triplets(_without_bullet(line))
            parsed += triplets
            broken = broken or not whole
    unique = tuple(
        triplet
        for triplet in dict.fromkeys(parsed)
        if tuple(part.lower() for part in triplet) != _PLACEHOLDERS
    )
    return Extracted(
        triplets=unique,
        abstained=not unique and not broken and _says_no_claims(text),
        broken=broken,
    )


def _without_bullet(line: str) -> str:
    return _BULLET.sub("", line, count=1)


def _says_no_claims(text: str) -> bool:
    """Return whether every line says that there are no claims."""
    lines = [_without_bullet(line).strip() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(
        line in ("[]", "()", '""') or _ABSTAINS.fullmatch(line) for line in lines
    )


def _json_triplets(text: str) -> list[Triplet] | None:
    stripped = text.strip()
    if not stripped.startswith(("[", "{")):
        return None
    try:
        data = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict):
        data = data.get("triplets", data.get("triples", data.get("claims", [data])))
    if not isinstance(data, list):
        return None
    if len(data) in (2, 3) and all(isinstance(item, str) for item in data):
        data = [data]
    triplets = []
    for item in data:
        if isinstance(item, dict):
            item = [item.get(key) for key in _PLACEHOLDERS]
        if not isinstance(item, list) or any(isinstance(part, (list, dict)) for part in item):
            return None
        triplet = _triplet(["" if part is None else str(part) for part in item])
        if triplet is None:
            return None
        triplets.append(triplet)
    return triplets or None


def _line_triplets(line: str) -> tuple[list[Triplet], bool]:
    """Return the triplets of a line, and whether all that began in it also ended."""
    if (plain := _WELL_FORMED.fullmatch(line)) and (triplet := _triplet(plain.groups())):
        return [triplet], True
    if line.count("|") == 2 and not re.search(r"-{3}", line) and not _QUOTED_GROUP.match(line):
        triplet = _triplet(line.split("|"))
        return ([triplet], True) if triplet and triplet[2] else ([], True)
    outer = re.match(r"[(\[]*(?=[(\[])", line)
    line = line[outer.end() :] if outer else line
    if line[:1] in _CLOSING and "," in line:
        line = f"({line.rstrip('.;, ')})"
    opened = [match.start() for match in _QUOTED_GROUP.finditer(line)]
    last_group = opened[-1] if opened else 0
    last_quote = _last_quote(line)
    triplets: list[Triplet] = []
    at = 0
    while at < len(line) and line[at] in "([":
        # Only in the line's last group can `the "x") y")` be told from a remark behind the group.
        group = _group(line, at, last_quote if at >= last_group else -1)
        if group is None:
            return triplets, not _begins_triplet(line, at)
        elements, quoted, at = group
        triplet = _triplet(elements) if quoted or len(elements) == 3 else None
        if triplet is not None:
            triplets.append(triplet)
        elif quoted:
            return triplets, False
        at = _BETWEEN_GROUPS.match(line, at).end()  # type: ignore[union-attr]  # matches the empty string
    return triplets, not (_QUOTED_GROUP.search(line, at) or _QUOTED_END.search(line, at))


def _last_quote(line: str) -> int:
    """Return the offset of the quotation mark that ends the line's last group; -1 if none does."""
    text = line.rstrip(" \t,;.)]")
    return len(text) - 1 if text[-1:] in _ELEMENT_ENDS and len(text) < len(line) else -1


def _begins_triplet(line: str, at: int) -> bool:
    return bool(_QUOTED_GROUP.match(line, at)) or "," in line[at:]


def _group(line: str, at: int, last_quote: int) -> tuple[list[str], bool, int] | None:
    """Return the elements of the group at `line[at]`, whether any was quoted, and its end.

    The result is None if the group is not closed. The elements are empty if they cannot be told
    apart. A quotation mark inside a quoted element counts as text unless it can only end the
    element. In the line's last group, a mark before `last_quote` that a parenthesis and more text
    follow is text too; `last_quote` is -1 for other groups.
    """
    elements: list[tuple[str, bool]] = []
    current: list[str] = []
    closing = mark = ""
    ended = False
    blank = True
    depth = 0
    i = at + 1

    def result(end: int) -> tuple[list[str], bool, int]:
        elements.append(("".join(current).strip(), ended))
        quoted = any(was_quoted for _, was_quoted in elements)
        sure = all(was_quoted or not mark or mark not in text for text, was_quoted in elements)
        sure = sure or all(was_quoted for _, was_quoted in elements[:3])
        return [text for text, _ in elements] if sure else [], quoted, end

    while i < len(line):
        sign = line[i]
        if closing:
            if sign == "\\" and line[i + 1 : i + 2] in (closing, "\\"):
                current.append(line[i + 1])
                i += 1
            elif sign == closing and (
                _ELEMENT_ENDS[closing].match(line, i + 1)
                or _GROUP_ENDS.match(line, i + 1)
                or (line[i + 1 : i + 2] in (")", "]") and i >= last_quote)
            ):
                closing, ended = "", True
            else:
                current.append(sign)
        elif sign in _CLOSING and blank:
            closing = mark = _CLOSING[sign]
            blank, current = False, []
        elif sign == "," and not depth:
            elements.append(("".join(current).strip(), ended))
            current, ended, blank = [], False, True
        elif sign in ")]" and not depth:
            return result(i + 1)
        elif not ended:
            depth += (sign in "([") - (sign in ")]")
            blank = blank and sign.isspace()
            current.append(sign)
        i += 1
    # Only the closing parenthesis is missing.
    return result(len(line)) if ended and len(elements) == 2 else None


def _triplet(elements: Sequence[str]) -> Triplet | None:
    parts = [" ".join(element.split()) for element in elements]
    while parts and not parts[-1]:
        parts.pop()
    if len(parts) < 2 or not parts[0] or not re.search(r"\w", "".join(parts)):
        return None
    return parts[0], parts[1], ", ".join(parts[2:])
