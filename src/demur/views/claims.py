"""Number the claims of an answer, make their ids, and list them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from demur._text import one_line
from demur.schema import Claim, Evaluation
from demur.views.description import Quote, ShownClaim, describe_claim
from demur.views.elements import Element, element, separated
from demur.views.folds import quotation, shortened
from demur.views.pills import pill

_REASON = "What calls, calculations or a search for exact strings say of the claim."


class Numbered(NamedTuple):
    """Pair a claim with its number, counted from 1 over all evaluators of an answer."""

    number: int
    claim: Claim


class Place(NamedTuple):
    """Locate a piece of evidence in the text of a reference, as a half-open span."""

    context: int
    start: int
    end: int


@dataclass(frozen=True)
class View:
    """Hold what the parts of one answer's view share: ids, names and places."""

    prefix: str
    """The prefix of all ids."""
    names: Sequence[str] = ()
    """The names of the references."""
    marked: Container[int] = frozenset()
    """The numbers of the claims that are highlighted in the answer."""
    places: Mapping[tuple[int, int], Place] = field(default_factory=dict)
    """The places of evidence in the references, by the claim's number and the evidence's index."""

    def in_answer(self, number: int) -> str:
        """Return the id of a claim's place in the answer."""
        return f"{self.prefix}-a{number}"

    def in_list(self, number: int) -> str:
        """Return the id of a claim in the list."""
        return f"{self.prefix}-c{number}"

    def evidence(self, number: int, at: int) -> str:
        """Return the id of a claim's evidence in a reference."""
        return f"{self.prefix}-e{number}-{at}"

    def is_placed(self, number: int, at: int) -> bool:
        """Return whether a claim's evidence is marked in a reference."""
        return (number, at) in self.places

    def target(self, item: Numbered) -> str:
        """Return the id that a claim in the answer links to: its evidence, else its list entry."""
        for at in range(len(item.claim.evidence)):
            if self.is_placed(item.number, at):
                return self.evidence(item.number, at)
        return self.in_list(item.number)

    def shown(self, claim: Claim) -> ShownClaim:
        """Return the texts to show for a claim."""
        return describe_claim(claim, self.names)


def numbered(evaluations: Iterable[Evaluation]) -> list[list[Numbered]]:
    """Return the claims of each evaluation, numbered over all evaluations."""
    numbered_claims: list[list[Numbered]] = []
    count = 0
    for evaluation in evaluations:
        numbered_claims.append(
            [Numbered(count + at, claim) for at, claim in enumerate(evaluation.claims, 1)]
        )
        count += len(evaluation.claims)
    return numbered_claims


def tooltip(item: Numbered, view: View) -> str:
    """Return the tooltip of a claim in the answer."""
    shown = view.shown(item.claim)
    lines = [f"{item.number}. {shown.label}: {one_line(shown.text)}"]
    lines += [one_line(line) for line in (shown.error, shown.reason) if line is not None]
    lines += [f"{quote.reference}: “{shortened(one_line(quote.text))}”" for quote in shown.quotes]
    return "\n".join(lines)


def claim_list(claims: Sequence[Numbered], view: View) -> Element | None:
    """List each claim with its label and evidence; return None if there are no claims."""
    if not claims:
        return None
    return element(
        "ol", *(_item(claim, view) for claim in claims), class_="demur-claims", role="list"
    )


def _item(numbered_claim: Numbered, view: View) -> Element:
    number, claim = numbered_claim
    shown = view.shown(claim)
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
            element("p", shown.text, class_="demur-claim-text", dir="auto"),
            _triplet(claim),
            None if shown.error is None else element("p", shown.error, class_="demur-why"),
            _reason(shown),
            *(_quote(quote, number, at, view) for at, quote in enumerate(shown.quotes)),
        ),
        pill(shown.look, shown.label, _shares(claim)),
        id=view.in_list(number),
        class_=f"demur-claim {shown.look.css}",
        data_claim=str(number),
    )


def _shares(claim: Claim) -> str | None:
    if not claim.probabilities:
        return None
    return ", ".join(f"{label} {share:.1%}" for label, share in claim.probabilities.items())


def _triplet(claim: Claim) -> Element | None:
    if claim.triplet is None:
        return None
    parts = (element("span", part, dir="auto") for part in claim.triplet)
    return element("p", separated(parts, " → "), class_="demur-triplet")


def _reason(shown: ShownClaim) -> Element | None:
    if shown.reason is None:
        return None
    return element("p", shown.reason, class_="demur-why", title=_REASON, dir="auto")


def _quote(quote: Quote, number: int, at: int, view: View) -> Element:
    where = element("cite", quote.reference)
    if view.is_placed(number, at):
        where = element("a", quote.reference, href=f"#{view.evidence(number, at)}")
    label = None if quote.label is None else f", {quote.label}"
    return quotation(quote.text, " ", element("span", where, label, class_="demur-where"))
