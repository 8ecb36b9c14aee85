"""Measure in five ways how far a sentence is from what the samples say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from statistics import fmean

from langchain_core.language_models import BaseChatModel
from pydantic import JsonValue

from demur._text import sentences
from demur.evaluators.baselines.consistency import (
    Unigrams,
    contradiction,
    mean,
    unlike,
    unsupported,
)
from demur.evaluators.baselines.parsing import parse_yes_no
from demur.local import SmallJudge
from demur.runtime import ChatCall, LocalCall, Steps, ask, ask_all, bounded
from demur.runtime.prompting import Prompt
from demur.schema import ClaimLabel
from demur.similarity import NLI, Pair, Similarity

_WORD_TOKENS = 16


@dataclass(frozen=True)
class Inconsistency:
    """Hold how far one sentence is from the samples."""

    inconsistency: float | None
    """The inconsistency, in [0, 1]; by unigrams, 0 or more. None if no value can be read."""
    values: tuple[float | None, ...] = ()
    """The inconsistency with each sample, or None where it cannot be read. Empty by unigrams, since
    one model stands for all samples."""
    worst: float | None = None
    """By unigrams, the inconsistency of the least expected word."""

    def as_details(self) -> dict[str, JsonValue]:
        """Return the fields as JSON values for an evaluation's details."""
        worst = {} if self.worst is None else {"worst": self.worst}
        return {"inconsistency": self.inconsistency, "values": [*self.values], **worst}


Compare = Callable[[Sequence[str], Sequence[str]], Steps["list[Inconsistency]"]]
"""A function from the answer's sentences and the samples to the inconsistency of each sentence."""


def by_similarity(
    similarity: Similarity, texts: Sequence[str], samples: Sequence[str]
) -> Steps[list[Inconsistency]]:
    """Measure each sentence by 1 less its similarity to each sample's most similar sentence."""
    parts = [_sentences(sample) for sample in samples]
    pairs = [(text, part) for text in texts for some in parts for part in some]
    call = LocalCall(partial(similarity.scores, pairs), "similarity")
    scores = iter((yield from ask(call, "the similarity failed")).tolist())
    table = [[unlike([next(scores) for _ in some]) for some in parts] for _ in texts]
    return _rows(table)


def by_nli(
    nli: NLI | SmallJudge, texts: Sequence[str], samples: Sequence[str]
) -> Steps[list[Inconsistency]]:
    """Measure each sentence by the probability that a sample contradicts it.

    By the small judge, it is the probability that the sample does not support the sentence: the
    judge was trained to tell that. A text in place of its probabilities says that it cannot read
    the sentence.
    """
    measure = unsupported if isinstance(nli, SmallJudge) else contradiction
    pairs = [(sample, text) for text, sample in product(texts, samples)]
    predict: Callable[[Sequence[Pair]], Sequence[Mapping[ClaimLabel, float] | str]] = nli.predict
    call = LocalCall(partial(predict, pairs), "nli")
    predicted = yield from ask(call, "the NLI model failed")
    values = iter([None if isinstance(one, str) else measure(one) for one in predicted])
    return _rows([[next(values) for _ in samples] for _ in texts])


def by_prompt(
    model: BaseChatModel, prompt: Prompt, texts: Sequence[str], samples: Sequence[str]
) -> Steps[list[Inconsistency]]:
    """Measure each sentence by the model's yes or no: 0 if a sample supports it, else 1.

    SelfCheckGPT counts any other reply as 0.5; here it is left out.
    """
    pairs = list(product(texts, samples))
    outcomes = yield from ask_all(
        [
            ChatCall(
                model,
                prompt.messages(context=sample, sentence=text),
                "support",
                bounded(model, _WORD_TOKENS),
            )
            for text, sample in pairs
        ]
    )
    if outcomes and all(outcome.error is not None for outcome in outcomes):
        outcomes[0].expect()
    read = [
        None if outcome.error is not None else parse_yes_no(outcome.value.text, (text, sample))
        for outcome, (text, sample) in zip(outcomes, pairs, strict=True)
    ]
    values = iter([None if supported is None else float(not supported) for supported in read])
    return _rows([[next(values) for _ in samples] for _ in texts])


def by_unigrams(texts: Sequence[str], samples: Sequence[str]) -> Steps[list[Inconsistency]]:
    """Measure each sentence, of at least one word, by its words' mean negative log-probability."""
    yield from ask_all(())
    known = Unigrams([*chain.from_iterable(map(_sentences, samples)), *texts])
    surprises = [known.surprises(text) for text in texts]
    return [Inconsistency(fmean(surprise), worst=max(surprise)) for surprise in surprises]


def _rows(table: Sequence[Sequence[float | None]]) -> list[Inconsistency]:
    return [Inconsistency(mean(row), tuple(row)) for row in table]


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]
