"""Mark places in a text: claims in an answer, evidence in a reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from demur.views.elements import Element, element
from demur.views.folds import folded
from demur.views.highlight import segments
from demur.views.pills import sign
from demur.views.words import Look, severity

_MOST_TIPS = 8


class Mark(NamedTuple):
    """Describe one place to highlight."""

    start: int
    end: int
    """The end of the half-open span in the text."""
    number: int
    """The number of the claim."""
    look: Look
    id: str
    note: str
    """The id of the claim in the list, which the number behind the place links to."""
    target: str | None = None
    """The id that the place itself links to."""
    tip: str | None = None
    """The tooltip of the place."""


def marked(text: str, marks: Sequence[Mark], *, fold: bool = False) -> list[str]:
    """Return the text with its marks, as elements and plain strings.

    Where marks overlap, a piece has the look and the link of the worst mark. The number of each
    claim follows the end of its mark and links to the claim, so that all claims can be reached. The
    tab key stops once at each mark and at each number.

    Args:
        text: The text. A mark outside it is left out.
        marks: The marks, in any order.
        fold: Whether to fold long parts that have no marks.
    """
    marks = sorted(marks)
    pieces = segments(text, [(mark.start, mark.end, at) for at, mark in enumerate(marks)])
    last = {member: at for at, piece in enumerate(pieces) for member in piece.members}
    begun: set[int] = set()
    linked: set[int] = set()
    shown: list[str] = []
    for at, (part, members) in enumerate(pieces):
        if not members:
            # The text beside a mark stays visible, as does the beginning of a text without marks.
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
    """Return the tooltip of the claims over a piece; of many claims, it shows only the first."""
    tips = [mark.tip for mark in over if mark.tip]
    more = len(tips) - _MOST_TIPS
    return "\n".join([*tips[:_MOST_TIPS], *([f"and {more:,} more"] if more > 0 else [])]) or None


def _note(mark: Mark) -> Element:
    number = element(
        "a",
        sign(mark.look),
        str(mark.number),
        href=f"#{mark.note}",
        title=f"claim {mark.number}: {mark.look.word}",
        aria_label=f"claim {mark.number}: {mark.look.word}",
    )
    return element("sup", number, class_=f"demur-note {mark.look.css}", data_claim=str(mark.number))
