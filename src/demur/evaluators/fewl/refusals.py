"""Say why there is no score: what the sample, the references or the store lack, and what to do."""

from __future__ import annotations

from demur.evaluators.fewl.entries import KnownQuestion
from demur.evaluators.fewl.terms import Weighting
from demur.schema import Sample

# A score without the penalty is higher than a score with it, and the threshold was chosen for
# scores with it. So every answer to the first question of a new store would pass.
NO_NEIGHBOR = (
    "no neighbouring question was found, so the score has no penalty and another scale than the "
    "threshold: fit() other questions first, or penalty=False with a threshold of its own"
)


def sample(scored: Sample, weighting: Weighting) -> str | None:
    """Return why a sample cannot be scored, or None if it can."""
    if not (scored.question or "").strip():
        return "there is no question: FEWL asks the references what the sample's question asks"
    if not scored.answer.strip():
        return "the answer is empty: there is nothing to score"
    if weighting == "ideal":
        for side in ("correct", "incorrect"):
            texts = scored.metadata.get(side)
            if not _are_texts(texts):
                return (
                    "weighting='ideal' compares the references with labelled answers: "
                    f"expected a list of texts in metadata[{side!r}], got {texts!r}"
                )
    return None


def no_best(known: KnownQuestion, min_pairs: int) -> str:
    """Return why the reference with the highest expertise is unknown, and what to do."""
    return (
        f"the best reference is unknown: {known.usable_pairs} usable pairs of wrong and corrected "
        f"answers, fewer than {min_pairs=}. For weighting='best' give another generator, which may "
        "write better pairs; or give weighting='expertise', which then gives all references the "
        "same weight"
    )


def _are_texts(value: object) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(text, str) for text in value)
    )
