"""Run the small judge in this process: a cross-encoder on ONNX Runtime.

It reads a reference and a claim together, and gives the probability of each label. It needs no
language model, no server and no network.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from demur._text import replace_surrogates, script_of
from demur.local.cores import usable_cores
from demur.local.judges import ENCODER, ENCODER_TOKENIZER, find_judge, fit, judge_folder
from demur.local.sessions import delaying_exit, loaded, need_packages
from demur.runtime.prompting import as_shown
from demur.schema import ClaimLabel

_log = logging.getLogger(__name__)

SMALL = "small"
"""The name by which an evaluator is given the small judge in place of a chat model."""
Probabilities = dict[ClaimLabel, float]

_LABELS = (ClaimLabel.ENTAILMENT, ClaimLabel.CONTRADICTION, ClaimLabel.NEUTRAL)
"""The labels in the order of the model's outputs."""
_BEGIN, _SEPARATOR, _UNKNOWN = 0, 2, 3
"""The tokens around the two texts, and the one in place of what the vocabulary lacks."""
_OWN = ("<s>", "<pad>", "</s>", "<mask>")
"""The tokens of the vocabulary that are no text."""
_MOST, _MOST_OF_CLAIM = 512, 120
"""The most tokens that the model reads at once, and the most of a claim, as it was trained."""
_OVERLAP = 5
"""Pieces of a text that is too long share a fifth of their tokens."""
_SCRIPTS = {"LATIN", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "ARABIC", "DEVANAGARI"}
"""The scripts of the languages in which the judge was measured, as in Unicode's names."""


@dataclass(frozen=True)
class _Tokens:
    """Hold the tokens of a text, and where each stands in it."""

    ids: Sequence[int]
    offsets: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class SmallJudge:
    """Judge claims by a cross-encoder in this process, without a language model.

    Creating a `SmallJudge` verifies the files of `demur-judge`. The first claim loads them, once in
    each process. You can use it from several threads.

    A claim of more than 120 tokens is judged in parts, and is as well supported as its least
    supported part. A reference that does not fit beside it is read in pieces, and supports the
    claim as well as its best piece.

    Raises:
        MissingExtraError: `demur-judge`, ONNX Runtime or tokenizers is not installed.
        LocalModelError: A file is missing or damaged.
    """

    batch_size: ClassVar[int] = 2
    """The number of pairs for a call.

    Each call uses one core, and calls run side by side, so small ones share the cores evenly.
    """

    def __post_init__(self) -> None:
        need_packages("small", "the small judge")
        _verify()

    def __str__(self) -> str:
        """Return the name by which an evaluator is given it."""
        return SMALL

    @property
    def fingerprint(self) -> str:
        """Return what identifies the probabilities: the sha256 of the weights, and the fit."""
        temperature, shift = fit()
        return f"{find_judge(ENCODER).sha256}, {temperature}, {shift}"

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[Probabilities | str]:
        """Return the probability of each label for each (reference, claim), in order.

        A text in place of the probabilities says why the judge cannot read the claim.

        Raises:
            LocalModelError: The files are missing, damaged, or cannot be loaded.
        """
        tokenizer, session = loaded(*_files(), verify=_verify, at_once=usable_cores())
        # Without white space around them, which would be a token that changes the probabilities.
        texts = {
            text: as_shown(replace_surrogates(text)).strip() for text in chain.from_iterable(pairs)
        }
        encodings = delaying_exit(
            tokenizer.encode_batch, [*texts.values()], add_special_tokens=False
        )
        # A text may spell the judge's own tokens in other letters, which the tokenizer makes plain.
        own = {tokenizer.token_to_id(token) for token in _OWN}
        encoded = {
            text: _Tokens([_UNKNOWN if at in own else at for at in one.ids], one.offsets)
            for text, one in zip(texts, encodings, strict=True)
        }
        for claim in {claim for _, claim in pairs}:
            _warn_of_script(_main_script(claim))
        judged: dict[tuple[str, str], Probabilities | str] = {}
        for reference, claim in dict.fromkeys(pairs):
            ids, offsets = encoded[claim].ids, encoded[claim].offsets
            tokens = zip(ids, offsets, strict=True)
            error = unread(SMALL, texts[claim], tokens, _UNKNOWN, texts[reference])
            judged[reference, claim] = error or _judge(session, encoded[reference].ids, ids)
        return [judged[pair] for pair in pairs]


def _files() -> tuple[Path, Path]:
    folder = judge_folder()
    return folder / ENCODER_TOKENIZER, folder / ENCODER


def _verify() -> None:
    for file in (ENCODER_TOKENIZER, ENCODER):
        find_judge(file)


def _judge(session: Any, reference: Sequence[int], claim: Sequence[int]) -> Probabilities:
    def support(shares: Probabilities) -> float:
        return shares[ClaimLabel.ENTAILMENT]

    def best(part: Sequence[int]) -> Probabilities:
        pieces = _pieces(reference, _MOST - 3 - len(part))
        return max((_run(session, part, piece) for piece in pieces), key=support)

    return min(map(best, _pieces(claim, _MOST_OF_CLAIM)), key=support)


def _pieces(tokens: Sequence[int], most: int) -> list[Sequence[int]]:
    """Cut tokens into overlapping pieces of at most `most`."""
    overlap = most // _OVERLAP
    starts = range(0, max(1, len(tokens) - overlap), most - overlap)
    return [tokens[start : start + most] for start in starts]


def _run(session: Any, claim: Sequence[int], reference: Sequence[int]) -> Probabilities:
    # One pair at a time: the model's 8 bits are scaled by the largest number of all pairs that are
    # read together, so a pair would get other probabilities in other company.
    ids = np.array([[_BEGIN, *claim, _SEPARATOR, *reference, _SEPARATOR]], np.int64)
    of_reference = np.arange(ids.size)[np.newaxis] >= len(claim) + 2
    (logits,) = session.run(
        None,
        {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": of_reference.astype(np.int64),
        },
    )
    weights = np.exp(logits[0] - logits[0].max()).astype(float)
    shares = dict(zip(_LABELS, (weights / weights.sum()).tolist(), strict=True))
    return calibrated(shares, *fit())


def calibrated(
    shares: Mapping[ClaimLabel, float], temperature: float, shift: float
) -> Probabilities:
    """Return the probabilities with the log-odds of Entailment cooled and shifted.

    The other labels keep their ratio.
    """
    others = 1 - shares[ClaimLabel.ENTAILMENT]
    if not 0 < others < 1:
        return dict(shares)
    odds = math.log(shares[ClaimLabel.ENTAILMENT] / others)
    supported = 1 / (1 + math.exp(-(odds / temperature + shift)))
    scaled = {label: share * (1 - supported) / others for label, share in shares.items()}
    return {**scaled, ClaimLabel.ENTAILMENT: supported}


def unread(
    judge: str,
    claim: str,
    tokens: Iterable[tuple[int, tuple[int, int]]],
    unknown: int | None,
    reference: str,
) -> str | None:
    """Return why a judge cannot judge a claim by its tokens and their offsets, or None.

    All that the vocabulary lacks looks the same to the model, so that another name would count as
    the right one. What the reference has in the same letters can be judged nevertheless.
    """
    for token, (start, end) in tokens:
        word = claim[start:end]
        if token == unknown and any(map(str.isalnum, word)) and word not in reference:
            return (
                f"the judge {judge!r} does not know {word!r}, which the reference does not have: "
                "choose another judge for such texts"
            )
    return None


def _main_script(text: str) -> str:
    """Return the script of most letters of a text."""
    if text.isascii():
        return "LATIN"
    letters = Counter(character for character in text if character.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        scripts[script_of(letter)] += count
    return scripts.most_common(1)[0][0] if scripts else "LATIN"


@cache  # so that it is said once in a process
def _warn_of_script(script: str) -> None:
    if script not in _SCRIPTS:
        _log.warning(
            "The judge %r was not measured on text in %s letters, and may be wrong more often "
            "there: check some of its verdicts yourself, or choose another judge.",
            SMALL,
            script.capitalize(),
        )
