"""Read labels, and yes or no, from the log-probabilities of a reply's first token."""

from __future__ import annotations

import math
from collections.abc import Mapping

from demur.runtime.undetermined import UndeterminedError
from demur.schema import NLI_LABELS, ClaimLabel


def label_shares(first_token: Mapping[str, float] | None) -> Mapping[ClaimLabel, float]:
    """Return the probability of each label, from the tokens that begin its word.

    Args:
        first_token: The log-probabilities of the most likely first tokens of a reply.

    Returns:
        One probability for each label, in [0, 1]; they sum to 1. A label that is not among the
        tokens counts with the lowest of their probabilities, which is an upper bound.

    Raises:
        UndeterminedError: There are no log-probabilities, or no label is among the tokens.
    """
    if not first_token:
        raise UndeterminedError(
            "the endpoint gives no log-probabilities: choose checker='joint' or 'per_claim'"
        )
    mass: dict[ClaimLabel, float] = dict.fromkeys(NLI_LABELS, 0.0)
    finite = {token: value for token, value in first_token.items() if math.isfinite(value)}
    for token, logprob in finite.items():
        word = token.strip(" \n\"'*_.").lower()
        for label in NLI_LABELS:
            if len(word) >= 2 and label.value.lower().startswith(word):
                mass[label] += math.exp(min(logprob, 0.0))
    if not any(mass.values()):
        raise UndeterminedError("none of the labels is among the reply's likely first tokens")
    floor = math.exp(min(*finite.values(), 0.0))
    shares = {label: max(share, floor) for label, share in mass.items()}
    total = sum(shares.values())
    return {label: share / total for label, share in shares.items()}


_LEAST_SAID = 0.5
"""The smallest probability that the first token begins one of the two words. A less likely reply
was going to begin with another word."""


def word_share(
    token: Mapping[str, float] | None, word: str, other: str, instead: str = "choose by='words'"
) -> float:
    """Return the probability, in [0, 1], that a token begins `word` and not `other`.

    Tokens that begin neither word, or both, are left out.

    Args:
        token: The log-probabilities of the most likely tokens at one place of a reply.
        word: The word, in lower case. A token counts for it if it begins this word and not the
            other.
        other: The other word, in lower case.
        instead: What the user may do about an error.

    Raises:
        UndeterminedError: There are no log-probabilities, or most of the probability is on other
            words.
    """
    if not token:
        raise UndeterminedError(f"the endpoint gives no log-probabilities: {instead}")
    mass = {word: 0.0, other: 0.0}
    for begun, logprob in token.items():
        fitting = begun_by(begun, word, other)
        if len(fitting) == 1 and math.isfinite(logprob):
            mass[fitting[0]] += math.exp(min(logprob, 0.0))
    said = mass[word] + mass[other]
    if said < _LEAST_SAID:
        raise UndeterminedError(
            f"the probability that the reply begins with {word} or {other} is only {said:.2f}, "
            f"expected at least {_LEAST_SAID}: {instead}"
        )
    return mass[word] / said


def begun_by(token: str, *words: str) -> list[str]:
    """Return the lower-case words that a token is, or begins with two letters or more."""
    begun = token.strip(" \n\"'*_.,").lower()
    return [word for word in words if word == begun or (begun[1:] and word.startswith(begun))]
