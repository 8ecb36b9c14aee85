"""What is offered to a store of exemplars: questions with answers, some with scores."""

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
    | Sequence[Any]  # a pair or a triple all the same, as JSON has them
)
"""A question and its answers; perhaps their scores."""


@dataclass(frozen=True)
class Offer:
    """Answers to a question."""

    question: str
    answers: Mapping[str, str | None]
    """Each with where it comes from."""
    scores: Mapping[str, float] | None = None
    """By the answer; None: the scorer is to be asked."""


def read_offer(offered: Offered, source: str | None, place: str) -> Offer:
    """A question with answers, checked; equal answers count once, with the last one's score.

    Args:
        offered: As a caller gave it.
        source: Where the answers come from.
        place: Where, in an error's words.

    Raises:
        ValueError: It is no question with answers, something is blank, or the numbers do not fit.
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
    """Those with scores and those without, each question once in each.

    Raises:
        ValueError: As `read_offer`.
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
    """Values in their order as a list; what is a text, or has keys or no order, as it is."""
    unfit = isinstance(values, str | bytes | Mapping | AbstractSet)
    return values if unfit or not isinstance(values, Iterable) else list(values)
