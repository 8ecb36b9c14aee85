"""What is offered to a store of exemplars: questions with answers, some with scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from demur.exemplars.entries import Entry, candidate_key, is_score, is_text
from demur.storage import question_id

Offered = (
    tuple[str, Sequence[str]]
    | tuple[str, Sequence[str], Sequence[float] | None]
    | Sequence[Any]  # a pair or a triple all the same, as JSON has them
)
"""A question and its answers; perhaps their scores."""


@dataclass(frozen=True)
class Offer:
    """Answers to a question, by the keys under which they are kept."""

    question: str
    answers: Mapping[str, str]
    scores: Mapping[str, float] | None = None
    """None: the scorer is to be asked."""
    sources: Mapping[str, str | None] = field(default_factory=dict)
    """Where each answer comes from."""

    def beside(self, known: Entry | None) -> Offer:
        """What of it changes what is known: new answers, and other scores."""
        scores = (
            {candidate_key(candidate.answer): candidate.score for candidate in known.candidates}
            if known
            else {}
        )
        own = self.scores or scores
        answers = {
            key: answer
            for key, answer in self.answers.items()
            if key not in scores or scores[key] != own[key]
        }
        return replace(self, answers=answers)


def read_offer(offered: Offered, source: str | None, place: str) -> Offer:
    """A question with answers, checked; equal answers count once, with the last one's score.

    Args:
        offered: As a caller gave it.
        source: Where the answers come from.
        place: Where, in an error's words.

    Raises:
        ValueError: It is no question with answers, or the scores do not fit.
    """
    ordered = hasattr(offered, "__getitem__") and not isinstance(offered, str | Mapping)
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
    keys = [candidate_key(answer) for answer in answers]
    kept = None
    if scores is not None:
        if (
            not isinstance(scores, list)
            or len(scores) != len(answers)
            or not all(map(is_score, scores))
        ):
            raise ValueError(
                f"{place}: expected {len(answers)} finite numbers, one per answer to "
                f"{question!r}, got scores={scores!r}"
            )
        kept = dict(zip(keys, map(float, scores), strict=True))
    answers_by_key = dict(zip(keys, answers, strict=True))
    return Offer(question, answers_by_key, kept, dict.fromkeys(keys, source))


def read_offers(
    offered: Iterable[Offered], source: str | None
) -> tuple[dict[str, Offer], dict[str, Offer]]:
    """Those with scores and those without, by the question's id, each question once in each.

    Raises:
        ValueError: As `read_offer`.
    """
    if not hasattr(offered, "__iter__") or isinstance(offered, str | Mapping):
        raise ValueError(f"expected a list of (question, answers), got {offered!r}")
    scored: dict[str, Offer] = {}
    open_: dict[str, Offer] = {}
    for at, value in enumerate(offered):
        offer = read_offer(value, source, f"offer {at}")
        side = open_ if offer.scores is None else scored
        id_ = question_id(offer.question)
        side[id_] = _both(side[id_], offer) if id_ in side else offer
    return scored, open_


def _both(first: Offer, second: Offer) -> Offer:
    scores = None
    if second.scores is not None:
        scores = {**(first.scores or {}), **second.scores}
    return replace(
        first,
        answers={**first.answers, **second.answers},
        scores=scores,
        sources={**first.sources, **second.sources},
    )


def _listed(values: Any) -> Any:
    """Values in their order as a list; what is a text, or has keys or no order, as it is."""
    unfit = isinstance(values, str | bytes | Mapping | AbstractSet)
    return values if unfit or not isinstance(values, Iterable) else list(values)
