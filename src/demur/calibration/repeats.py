"""Answers that were given more than once: counted once, for samples have to be independent.

Two answers are the same if their questions and their texts are, once every run of white space is
read as one space. The contexts are not compared: an answer that comes again with other documents is
no new draw either. Taking two different answers for one costs samples, and never the guarantee.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from demur.calibration.samples import Bools, CalibrationError, Samples
from demur.evaluators import as_sample
from demur.schema import Sample

Answers: TypeAlias = Sequence[Sample | Mapping[str, Any] | str | None]
"""What was judged, answer by answer: samples, mappings with their fields, or what `answer_key` says
of them; None for an answer that cannot be compared."""


class RepeatsWarning(UserWarning):
    """Answers repeat others, and are counted once."""


def answer_key(question: str | None, answer: str) -> str | None:
    """A text that is the same for the same question and answer only; None of an empty answer."""
    if not answer.strip():
        return None  # of a log that keeps no texts, say
    folded = [None if text is None else " ".join(text.split()) for text in (question, answer)]
    return hashlib.sha256(json.dumps(folded).encode()).hexdigest()


def contradiction(keys: Sequence[str | None], labels: Bools | Sequence[bool]) -> list[int]:
    """The places of the first two answers that are the same and labelled differently, if any."""
    first: dict[str, int] = {}
    for at, key in enumerate(keys):
        if key is not None and labels[first.setdefault(key, at)] != labels[at]:
            return [first[key], at]
    return []


def once(samples: Samples, answers: Answers | None) -> Samples:
    """Count each answer once; a warning says how many repeat others.

    Where repeats have different scores, the highest counts of a hallucinated answer, and of any
    other the lowest: none looks better than it was at any time.

    Args:
        samples: What was read, with the repeats.
        answers: What was judged. None: nothing is known of repeats, and all are counted.

    Returns:
        Samples of which none repeats another, those that were given in `drawn`.

    Raises:
        CalibrationError: They are not as many as the scores, or the same answer is labelled as
            hallucinated and as not.
    """
    if answers is None:
        return samples
    keys = [
        answer if isinstance(answer, str | None) else _key(as_sample(answer)) for answer in answers
    ]
    if len(keys) != samples.size:
        raise CalibrationError(
            f"expected one sample for each score, got {samples.size:,} scores and {len(keys):,} "
            "samples"
        )
    labels = samples.hallucinated
    if labels is not None and (pair := contradiction(keys, labels)):
        raise CalibrationError(
            f"numbers {pair[0] + 1:,} and {pair[1] + 1:,} are the same answer to the same "
            "question, one labelled as hallucinated and the other not: correct the labels, or "
            "leave both out"
        )
    # The scores that count come first.
    better = samples.scores if labels is None else np.where(labels, -samples.scores, samples.scores)
    seen = set[str]()
    kept = []
    for at in np.argsort(better, kind="stable").tolist():
        key = keys[at]
        if key is None or key not in seen:
            kept.append(at)
        if key is not None:
            seen.add(key)
    repeats = samples.size - len(kept)
    if not repeats:
        return samples
    warnings.warn(
        f"{repeats:,} of the {samples.size:,} answers repeat others: each is counted once, since "
        "repeats are not independent of each other",
        RepeatsWarning,
        stacklevel=3,
    )
    kept.sort()
    return replace(
        samples,
        scores=samples.scores[kept],
        hallucinated=None if labels is None else labels[kept],
        drawn=samples,
    )


def _key(sample: Sample) -> str | None:
    return answer_key(sample.question, sample.answer)
