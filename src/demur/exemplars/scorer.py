"""Whose scores a store of exemplars holds, and how a candidate comes by one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property

from demur._jsonl import as_json
from demur.errors import DemurError
from demur.evaluators import FEWL
from demur.exemplars.entries import Candidate
from demur.exemplars.offers import Offer
from demur.runtime import RunnableCall, Steps, ask_all
from demur.schema import Sample, Usage

GIVEN = "given"
"""The scorer of scores that come from outside."""

_PARTS = ("weights", "similarities", "penalties", "expertise", "pairs_used", "neighbors_used")
"""Of FEWL's details, what the score is worked out from."""


@dataclass(frozen=True)
class Scored:
    """Candidates, and what became of the answers that are none."""

    candidates: Sequence[Candidate]
    failed: tuple[str, ...] = ()
    """Of each answer without a score, which and why."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Scorer:
    """FEWL, or nobody: then scores are given.

    Raises:
        TypeError: It is neither.
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
        """In JSON, all that the scores depend on."""
        return as_json(self.fewl.fingerprints if self.fewl else {GIVEN: "by the caller"})

    @cached_property
    def name(self) -> str:
        """What tells it from other scorers."""
        return hashlib.sha256(self.basis.encode()).hexdigest()[:12] if self.fewl else GIVEN

    def check(self, offer: Offer) -> None:
        """Refuse answers that nobody scored and nobody can.

        Raises:
            DemurError: There is nobody to ask.
        """
        if self.fewl is None and offer.scores is None and offer.answers:
            raise DemurError(
                f"there is nothing to score answers to {offer.question!r} with: give scores, or "
                "open the store with a scorer, ExampleStore(..., scorer=FEWL(...))"
            )

    def given(self, offer: Offer) -> list[Candidate]:
        """Candidates with the scores that are offered with them."""
        now, scores = _now(), offer.scores or {}
        return [
            Candidate(answer, scores[answer], self.name, now, source)
            for answer, source in offer.answers.items()
        ]

    def score(self, offer: Offer) -> Steps[Scored]:
        """Have answers to a question scored, unless they come with scores.

        They are scored side by side; the references are asked once for all of them.

        Raises:
            DemurError: There is nobody to ask.
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
