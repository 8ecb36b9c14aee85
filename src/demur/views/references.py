"""Show the references of an answer, with the evidence marked."""

from __future__ import annotations

from collections.abc import Container, Sequence

from langchain_core.documents import Document

from demur.views.claims import Numbered, Place, View
from demur.views.elements import Element, element
from demur.views.marking import Mark, marked
from demur.views.words import label_look


def places_of(
    claims: Sequence[Numbered], contexts: Sequence[Document]
) -> dict[tuple[int, int], Place]:
    """Return the places of evidence in the references, by claim number and index of the evidence.

    Evidence that is not in the references is left out. It may come from `Sample.reference`, which
    attempts do not keep, or from a text that was redacted before it was stored.
    """
    texts = [context.page_content for context in contexts]
    places: dict[tuple[int, int], Place] = {}
    for number, claim in claims:
        for at, evidence in enumerate(claim.evidence):
            if evidence.context is None or evidence.context >= len(texts) or not evidence.text:
                continue
            text, start = texts[evidence.context], evidence.span.start
            if text[start : evidence.span.end] != evidence.text:
                # A credential in front of it, which was replaced, may have moved it.
                start = text.find(evidence.text)
                if start < 0 or text.find(evidence.text, start + 1) >= 0:
                    continue
            end = start + len(evidence.text)
            places[number, at] = Place(evidence.context, start, end)
    return places


def reference_list(
    contexts: Sequence[Document],
    claims: Sequence[Numbered],
    view: View,
    new: Container[int] = (),
) -> Element | None:
    """Show each reference, with long parts folded that are not evidence; return None without any.

    Args:
        contexts: The references.
        claims: All claims of the answer.
        view: The ids and names of the answer's view.
        new: The indices of the references that the attempt before did not have.
    """
    if not contexts:
        return None
    marks: dict[int, list[Mark]] = {}
    for number, claim in claims:
        for at, evidence in enumerate(claim.evidence):
            if (place := view.places.get((number, at))) is not None:
                mark = Mark(
                    start=place.start,
                    end=place.end,
                    number=number,
                    look=label_look(evidence.label),
                    id=view.evidence(number, at),
                    note=view.in_list(number),
                )
                marks.setdefault(place.context, []).append(mark)
    return element(
        "section",
        element("p", "References", class_="demur-title"),
        *(
            _reference(
                view.names[at],
                marked(document.page_content, marks.get(at, ()), fold=True),
                at in new,
            )
            for at, document in enumerate(contexts)
        ),
        class_="demur-references",
    )


def _reference(name: str, text: Sequence[str], new: bool) -> Element:
    return element(
        "div",
        element(
            "p",
            element("cite", name),
            element("span", "new", class_="demur-new") if new else None,
            class_="demur-source",
        ),
        element("div", *text, class_="demur-text", dir="auto"),
        class_="demur-reference",
    )
