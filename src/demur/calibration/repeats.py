"""Count repeated answers once, since samples have to be independent.

Two answers are the same if their questions and their texts are equal after every run of white space
is read as one space. The contexts are not compared, because an answer that comes again with other
documents is no independent draw either. To take two different answers for the same one costs
samples, and never the guarantee.
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
"""The answers that were judged, one for each score: samples, mappings with the fields of a sample,
or values of `answer_key`; None for an answer that cannot be compared."""


class RepeatsWarning(UserWarning):
    """Warn that some answers repeat others and are counted once."""


def answer_key(question: str | None, answer: str) -> str | None:
    """Return a text that is the same only for the same question and answer.

    The result is None if the answer is empty, because such answers cannot be compared.
    """
    if not answer.strip():
        return None  # as in a log that keeps no texts
    folded = [None if text is None else " ".join(text.split()) for text in (question, answer)]
    return hashlib.sha256(json.dumps(folded).encode()).hexdigest()


def contradiction(keys: Sequence[str | None], labels: Bools | Sequence[bool]) -> list[int]:
    """Return the indices of the first two equal answers with different labels, or an empty list."""
    first: dict[str, int] = {}
    for at, key in enumerate(keys):
        if key is not None and labels[first.setdefault(key, at)] != labels[at]:
            return [first[key], at]
    return []


def once(samples: Samples, answers: Answers | None) -> Samples:
    """Count each answer once, and warn how many answers repeat others.

    If repeats have different scores, the highest score counts for a hallucinated answer, and the
    lowest for any other. So no evaluator looks better than it was at any time.

    Args:
        samples: The samples that were read, with the repeats.
        answers: The answers that were judged. None: repeats are not known, and all samples are
            counted.

    Returns:
        Samples without repeats, with the given samples in `drawn`.

    Raises:
        CalibrationError: The number of answers differs from that of the scores, or the same answer
            is labelled both as hallucinated and as not.
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
