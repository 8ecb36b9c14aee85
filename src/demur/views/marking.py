"""A text with marks in it: claims in an answer, evidence in a reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from demur.views.elements import Element, element
from demur.views.folds import folded
from demur.views.highlight import segments
from demur.views.words import Look, severity

_MOST_TIPS = 8


class Mark(NamedTuple):
    """One place to highlight."""

    start: int
    end: int
    """Half-open, in the text."""
    number: int
    """Of the claim."""
    look: Look
    id: str
    note: str
    """The id that the number behind the place leads to: the claim in the list."""
    target: str | None = None
    """The id that the place itself leads to."""
    tip: str | None = None
    """What hovering tells."""


def marked(text: str, marks: Sequence[Mark], *, fold: bool = False) -> list[str]:
    """The text with its marks, in elements and plain strings.

    Where marks overlap, a piece looks and leads as the worst of them; behind the end of each is its
    number, which leads to its claim, so that all can be reached. The tab key stops once at each
    mark and at each number.

    Args:
        text: What is marked. A mark that is not in it is left out.
        marks: In any order.
        fold: Fold what is long and not marked.
    """
    marks = sorted(marks)
    pieces = segments(text, [(mark.start, mark.end, at) for at, mark in enumerate(marks)])
    last = {member: at for at, piece in enumerate(pieces) for member in piece.members}
    begun: set[int] = set()
    linked: set[int] = set()
    shown: list[str] = []
    for at, (part, members) in enumerate(pieces):
        if not members:
            # Beside a mark it is shown, and the begin of a text without any.
            alone, final = len(pieces) == 1, at == len(pieces) - 1
            shown += folded(part, head=at > 0 or alone, tail=not final) if fold else [part]
            continue
        worst = min(members, key=lambda member: severity(marks[member].look))
        beginning = [marks[member].id for member in members if member not in begun]
        over = [marks[member] for member in members]
        shown.append(_piece(part, over, marks[worst], beginning, worst in linked))
        begun.update(members)
        linked.add(worst)
        shown += [_note(marks[member]) for member in members if last[member] == at]
    return shown


def _piece(
    text: str, over: Sequence[Mark], worst: Mark, ids: Sequence[str], again: bool
) -> Element:
    content: str = text
    for id in ids[1:]:
        content = element("span", content, id=id, class_="demur-spot")
    attributes = {
        "class_": f"demur-mark {worst.look.css}",
        "id": ids[0] if ids else None,
        "data_claim": " ".join(str(number) for number in sorted({mark.number for mark in over})),
        "title": _tips(over),
    }
    if worst.target is None:
        return element("mark", content, **attributes)
    return element(
        "a", content, href=f"#{worst.target}", tabindex="-1" if again else None, **attributes
    )


def _tips(over: Sequence[Mark]) -> str | None:
    """What hovering tells of the claims over a piece: of many the first, else it would be huge."""
    tips = [mark.tip for mark in over if mark.tip]
    more = len(tips) - _MOST_TIPS
    return "\n".join([*tips[:_MOST_TIPS], *([f"and {more:,} more"] if more > 0 else [])]) or None


def _note(mark: Mark) -> Element:
    number = element(
        "a",
        element("span", mark.look.sign, class_="demur-sign", aria_hidden="true"),
        str(mark.number),
        href=f"#{mark.note}",
        title=f"claim {mark.number}: {mark.look.word}",
        aria_label=f"claim {mark.number}: {mark.look.word}",
    )
    return element("sup", number, class_=f"demur-note {mark.look.css}", data_claim=str(mark.number))
