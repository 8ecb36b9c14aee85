"""The claims of an answer: their numbers, their ids, and the list of them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from langchain_core.documents import Document

from demur._text import one_line
from demur.schema import Claim, Evaluation, Evidence
from demur.views.elements import Element, element, joined, separated
from demur.views.folds import folded, shortened
from demur.views.words import claim_look, label_text, missing_line

_MISSING = "These quantities of the claim stand nowhere in what it was held against."


class Numbered(NamedTuple):
    """A claim with its number, from 1, among all that evaluators found in one answer."""

    number: int
    claim: Claim


class Place(NamedTuple):
    """Where a piece of evidence stands: half-open, in the text of a reference."""

    context: int
    start: int
    end: int


@dataclass(frozen=True)
class View:
    """What the parts of one answer's view must know of each other."""

    prefix: str
    """Of its ids."""
    names: Sequence[str] = ()
    """Of the references."""
    marked: Container[int] = frozenset()
    """The numbers of the claims that are highlighted in the answer."""
    places: Mapping[tuple[int, int], Place] = field(default_factory=dict)
    """Where each claim's pieces of evidence are marked in the references."""

    def in_answer(self, number: int) -> str:
        """The id of a claim's place in the answer."""
        return f"{self.prefix}-a{number}"

    def in_list(self, number: int) -> str:
        """The id of a claim in the list."""
        return f"{self.prefix}-c{number}"

    def evidence(self, number: int, at: int) -> str:
        """The id of a claim's evidence in a reference."""
        return f"{self.prefix}-e{number}-{at}"

    def is_placed(self, number: int, at: int) -> bool:
        """Whether a claim's evidence is marked in a reference."""
        return (number, at) in self.places

    def target(self, one: Numbered) -> str:
        """Where a click on a claim in the answer leads: its evidence, or its place in the list."""
        for at in range(len(one.claim.evidence)):
            if self.is_placed(one.number, at):
                return self.evidence(one.number, at)
        return self.in_list(one.number)

    def name(self, evidence: Evidence) -> str:
        """What to call the reference of a piece of evidence."""
        at = evidence.context
        if at is None:
            return "reference"
        return self.names[at] if at < len(self.names) else f"reference {at + 1}"


def numbered(evaluations: Iterable[Evaluation]) -> list[list[Numbered]]:
    """The claims of each evaluation, counted through."""
    found: list[list[Numbered]] = []
    count = 0
    for evaluation in evaluations:
        found.append([Numbered(count + at, one) for at, one in enumerate(evaluation.claims, 1)])
        count += len(evaluation.claims)
    return found


def reference_names(contexts: Sequence[Document]) -> list[str]:
    """What to call the references: by their number, and their source where it is known."""
    sources = [_source(one) for one in contexts]
    return [
        f"reference {at} · {source}" if source else f"reference {at}"
        for at, source in enumerate(sources, 1)
    ]


def _source(document: Document) -> str | None:
    for key in ("title", "source"):
        value = document.metadata.get(key)
        if isinstance(value, str) and value.strip():
            return one_line(value)
    return None


def tooltip(one: Numbered, view: View) -> str:
    """What hovering over a claim in the answer tells."""
    number, claim = one
    lines = [f"{number}. {label_text(claim)}: {one_line(claim.text)}"]
    if claim.error is not None:
        lines.append(one_line(claim.error))
    if (missing := missing_line(claim)) is not None:
        lines.append(one_line(missing))
    for found in claim.evidence:
        lines.append(f"{view.name(found)}: “{shortened(one_line(found.text))}”")
    return "\n".join(lines)


def claim_list(claims: Sequence[Numbered], view: View) -> Element | None:
    """Each claim with its label and evidence; None where there are none."""
    if not claims:
        return None
    return element("ol", *(_item(one, view) for one in claims), class_="demur-claims", role="list")


def _item(one: Numbered, view: View) -> Element:
    number, claim = one
    look = claim_look(claim)
    back: Element | None = None
    if number in view.marked:
        back = element(
            "a",
            str(number),
            href=f"#{view.in_answer(number)}",
            title="to its place in the answer",
            aria_label=f"claim {number}, to its place in the answer",
        )
    return element(
        "li",
        element("span", back or str(number), class_="demur-number"),
        element(
            "div",
            element("p", claim.text, class_="demur-claim-text", dir="auto"),
            _triplet(claim),
            None if claim.error is None else element("p", claim.error, class_="demur-why"),
            _missing(claim),
            *(_quote(one, at, view) for at in range(len(claim.evidence))),
        ),
        element("span", label_mark(claim), class_=f"demur-label {look.css}", title=_shares(claim)),
        id=view.in_list(number),
        class_=f"demur-claim {look.css}",
        data_claim=str(number),
    )


def label_mark(claim: Claim) -> Element:
    """The label's sign and word."""
    sign = element("span", claim_look(claim).sign, class_="demur-sign", aria_hidden="true")
    return joined(sign, " ", label_text(claim))


def _shares(claim: Claim) -> str | None:
    if not claim.probabilities:
        return None
    return ", ".join(f"{label} {share:.1%}" for label, share in claim.probabilities.items())


def _triplet(claim: Claim) -> Element | None:
    if claim.triplet is None:
        return None
    parts = (element("span", part, dir="auto") for part in claim.triplet)
    return element("p", separated(parts, " → "), class_="demur-triplet")


def _missing(claim: Claim) -> Element | None:
    line = missing_line(claim)
    if line is None:
        return None
    return element("p", line, class_="demur-why", title=_MISSING, dir="auto")


def _quote(one: Numbered, at: int, view: View) -> Element:
    found = one.claim.evidence[at]
    name = view.name(found)
    where = element("cite", name)
    if view.is_placed(one.number, at):
        where = element("a", name, href=f"#{view.evidence(one.number, at)}")
    said = None if found.label == one.claim.label else f", {found.label}"
    return element(
        "blockquote",
        element("span", "“", *folded(found.text, tail=True), "”", dir="auto"),
        " ",
        element("span", where, said, class_="demur-where"),
        class_="demur-quote",
    )
