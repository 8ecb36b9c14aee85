"""Read labels from the log-probabilities of the first token, for models with biased words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demur._undetermined import UndeterminedError
from demur.schema import ClaimLabel


@dataclass(frozen=True)
class Calibration:
    """Hold pairs of reference and claim on which a model's bias for each label is measured."""

    cases: tuple[tuple[str, str], ...]


def label_logprobs(first_token: Mapping[str, float] | None) -> Mapping[ClaimLabel, float]:
    """Return the log-probability of each label, from the tokens that begin its word.

    Args:
        first_token: The log-probabilities of the most likely first tokens of a reply.

    Returns:
        One log-probability for each label. A label that is not among the tokens gets the lowest of
        their values, which is an upper bound.

    Raises:
        UndeterminedError: There are no log-probabilities, or no label is among the tokens.
    """
    if not first_token:
        raise UndeterminedError(
            "the endpoint gives no log-probabilities: choose checker='joint' or 'per_claim'"
        )
    mass: dict[ClaimLabel, float] = dict.fromkeys(ClaimLabel, 0.0)
    finite = {token: value for token, value in first_token.items() if math.isfinite(value)}
    for token, logprob in finite.items():
        word = token.strip(" \n\"'*_.").lower()
        for label in ClaimLabel:
            if len(word) >= 2 and label.value.lower().startswith(word):
                mass[label] += math.exp(min(logprob, 0.0))
    if not any(mass.values()):
        raise UndeterminedError("none of the labels is among the reply's likely first tokens")
    floor = math.exp(min(*finite.values(), 0.0))
    return {label: math.log(max(share, floor, 1e-30)) for label, share in mass.items()}


_LEAST_SAID = 0.5
"""The smallest probability that the first token begins one of the two words. A less likely reply
was going to begin with another word."""


def word_share(first_token: Mapping[str, float] | None, word: str, other: str) -> float:
    """Return the probability, in [0, 1], that a reply begins with `word` and not with `other`.

    Tokens that begin neither word, or both, are left out.

    Args:
        first_token: The log-probabilities of the most likely first tokens of a reply.
        word: The word, in lower case. A token counts for it if it begins this word and not the
            other.
        other: The other word, in lower case.

    Raises:
        UndeterminedError: There are no log-probabilities, or most of the probability is on other
            words.
    """
    if not first_token:
        raise UndeterminedError("the endpoint gives no log-probabilities: choose by='words'")
    mass = {word: 0.0, other: 0.0}
    for token, logprob in first_token.items():
        begun = token.strip(" \n\"'*_.,").lower()
        fitting = [known for known in mass if len(begun) >= 2 and known.startswith(begun)]
        if len(fitting) == 1 and math.isfinite(logprob):
            mass[fitting[0]] += math.exp(min(logprob, 0.0))
    said = mass[word] + mass[other]
    if said < _LEAST_SAID:
        raise UndeterminedError(
            f"the probability that the reply begins with {word} or {other} is only {said:.2f}, "
            f"expected at least {_LEAST_SAID}: choose by='words'"
        )
    return mass[word] / said


def mean_bias(measured: Sequence[Mapping[ClaimLabel, float]]) -> Mapping[ClaimLabel, float]:
    """Return each label's mean log-probability, less the mean over the labels."""
    means = {
        label: sum(probabilities[label] for probabilities in measured) / len(measured)
        for label in ClaimLabel
    }
    centre = sum(means.values()) / len(means)
    return {label: mean - centre for label, mean in means.items()}


def probabilities(logprobs: Mapping[ClaimLabel, float]) -> dict[ClaimLabel, float]:
    """Return the softmax of the log-probabilities over the labels."""
    top = max(logprobs.values())
    weights = {label: math.exp(value - top) for label, value in logprobs.items()}
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}
