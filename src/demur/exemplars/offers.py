"""Check what is offered to a store of exemplars: questions with answers, some with scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from demur.exemplars.entries import is_score, is_text
from demur.storage import question_id

Offered = (
    tuple[str, Sequence[str]]
    | tuple[str, Sequence[str], Sequence[float] | None]
    | Sequence[Any]  # a pair or a triple too, as a list from JSON
)
"""A question and its answers, optionally with their scores."""


@dataclass(frozen=True)
class Offer:
    """Hold the answers that are offered to a question."""

    question: str
    answers: Mapping[str, str | None]
    """The source of each answer, by the answer."""
    scores: Mapping[str, float] | None = None
    """The score of each answer, by the answer; None: the scorer must score them."""


def read_offer(offered: Offered, source: str | None, place: str) -> Offer:
    """Return a checked offer; equal answers count once, with the score of the last one.

    Args:
        offered: The question, the answers and perhaps the scores, as a caller gave them.
        source: Where the answers come from.
        place: Where the offer is, for the error message.

    Raises:
        ValueError: The value is not a question with answers, a text is blank, or there is not one
            finite score for each answer.
    """
    ordered = not isinstance(offered, str | bytes) and isinstance(offered, Sequence)
    if not ordered or len(offered) not in (2, 3):
        raise ValueError(
            f"{place}: expected (question, answers) or (question, answers, scores), got {offered!r}"
        )
    question, answers, scores = (*offered, None)[:3]
    if not is_text(question):
        raise ValueError(f"{place}: expected a question, got {question!r}")
    answers, scores = _listed(answers), None if scores is None else _listed(scores)
    if not isinstance(answers, list) or not answers:
        raise ValueError(f"{place}: expected a list of answers to {question!r}, got {answers!r}")
    for answer in answers:
        if not is_text(answer):
            raise ValueError(
                f"{place}: expected answers to {question!r} that say something, got {answer!r}"
            )
    if not isinstance(source, str | None):
        raise ValueError(f"{place}: expected a text as source, got {source!r}")
    if scores is not None and not (
        isinstance(scores, list) and len(scores) == len(answers) and all(map(is_score, scores))
    ):
        raise ValueError(
            f"{place}: expected {len(answers)} finite numbers, one per answer to {question!r}, got "
            f"scores={scores!r}"
        )
    given = None if scores is None else dict(zip(answers, map(float, scores), strict=True))
    return Offer(question, dict.fromkeys(answers, source), given)


def read_offers(offered: Iterable[Offered], source: str | None) -> tuple[list[Offer], list[Offer]]:
    """Return the offers with scores and the offers without; each question is once in each list.

    Raises:
        ValueError: `offered` is not a list of offers, or an offer does not fit.
    """
    if not hasattr(offered, "__iter__") or isinstance(offered, str | Mapping):
        raise ValueError(f"expected a list of (question, answers), got {offered!r}")
    scored: dict[str, Offer] = {}
    open_: dict[str, Offer] = {}
    for at, value in enumerate(offered):
        offer = read_offer(value, source, f"offer {at}")
        side, id_ = open_ if offer.scores is None else scored, question_id(offer.question)
        if before := side.get(id_):
            scores = None if offer.scores is None else {**(before.scores or {}), **offer.scores}
            offer = Offer(before.question, {**before.answers, **offer.answers}, scores)
        side[id_] = offer
    return [*scored.values()], [*open_.values()]


def _listed(values: Any) -> Any:
    """Return ordered values as a list; a text, a mapping, a set or a single value is unchanged."""
    unfit = isinstance(values, str | bytes | Mapping | AbstractSet)
    return values if unfit or not isinstance(values, Iterable) else list(values)
