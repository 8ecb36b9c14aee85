"""Score candidates with the scorer of a store of exemplars."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property

from demur._system import as_json
from demur.errors import DemurError
from demur.evaluators import FEWL
from demur.exemplars.entries import Candidate
from demur.exemplars.offers import Offer
from demur.runtime import RunnableCall, Steps, ask_all
from demur.schema import Sample, Usage

GIVEN = "given"
"""The name of the scorer of scores that the caller gives."""

_PARTS = ("weights", "similarities", "penalties", "expertise", "pairs_used", "neighbors_used")
"""The keys of FEWL's details from which a score can be worked out."""


@dataclass(frozen=True)
class Scored:
    """Hold the candidates, and the reasons why other answers have no score."""

    candidates: Sequence[Candidate]
    failed: tuple[str, ...] = ()
    """For each answer without a score, which answer it is and why."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Scorer:
    """Score answers by FEWL, or take the scores that the caller gives if `fewl` is None.

    Raises:
        TypeError: `fewl` is neither a FEWL nor None.
    """

    fewl: FEWL | None

    def __post_init__(self) -> None:
        if self.fewl is not None and not isinstance(self.fewl, FEWL):
            raise TypeError(
                f"expected a FEWL as scorer, got {type(self.fewl).__name__}. Scores of another "
                "kind can be given: store.add(question, answers, scores)"
            )

    @cached_property
    def basis(self) -> str:
        """Return everything that the scores depend on, as JSON."""
        return as_json(self.fewl.fingerprints if self.fewl else {GIVEN: "by the caller"})

    @cached_property
    def name(self) -> str:
        """Return a short text that distinguishes this scorer from others."""
        return hashlib.sha256(self.basis.encode()).hexdigest()[:12] if self.fewl else GIVEN

    def check(self, offer: Offer) -> None:
        """Refuse answers that have no scores if there is no scorer.

        Raises:
            DemurError: There is no scorer for answers without scores.
        """
        if self.fewl is None and offer.scores is None and offer.answers:
            raise DemurError(
                f"there is no scorer for the answers to {offer.question!r}: give scores, or open "
                "the store with a scorer, ExampleStore(..., scorer=FEWL(...))"
            )

    def given(self, offer: Offer) -> list[Candidate]:
        """Return candidates with the scores that are offered with them."""
        now, scores = _now(), offer.scores or {}
        return [
            Candidate(answer, scores[answer], self.name, now, source)
            for answer, source in offer.answers.items()
        ]

    def score(self, offer: Offer) -> Steps[Scored]:
        """Score the answers to a question, unless they have scores.

        They are scored at the same time. The references are asked once for all of them.

        Raises:
            DemurError: There is no scorer for answers without scores.
        """
        self.check(offer)
        if self.fewl is None or offer.scores is not None or not offer.answers:
            return Scored(self.given(offer))
        samples = [Sample(question=offer.question, answer=answer) for answer in offer.answers]
        outcomes = yield from ask_all(
            [RunnableCall(self.fewl, sample, "exemplar") for sample in samples]
        )
        candidates, failed, usage = [], [], Usage()
        for (answer, source), outcome in zip(offer.answers.items(), outcomes, strict=True):
            evaluation = None if outcome.error is not None else outcome.value
            if evaluation is not None:
                usage += evaluation.usage
            if evaluation is None or evaluation.score is None:
                why = outcome.error if evaluation is None else evaluation.error
                failed.append(f"the answer {answer[:60]!r} could not be scored: {why}")
            else:
                details, score = evaluation.details, evaluation.score
                parts = {part: details[part] for part in _PARTS if part in details}
                candidates.append(Candidate(answer, score, self.name, _now(), source, parts))
        return Scored(candidates, tuple(failed), usage)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")
