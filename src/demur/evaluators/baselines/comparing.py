"""Sentences beside samples: five ways to say how far a sentence is from what the samples say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from statistics import fmean

from langchain_core.language_models import BaseChatModel
from pydantic import JsonValue

from demur._text import sentences
from demur.evaluators.baselines.consistency import NGrams, contradiction, mean, unlike
from demur.evaluators.baselines.parsing import parse_yes_no
from demur.prompting import Prompt
from demur.runtime import ChatCall, LocalCall, Steps, ask, ask_all, bounded
from demur.similarity import NLI, Similarity

_WORD_TOKENS = 16


@dataclass(frozen=True)
class Inconsistency:
    """What is known of one sentence."""

    inconsistency: float | None
    """In [0, 1], by n-grams at least 0; None where no sample says anything that can be read."""
    values: tuple[float | None, ...] = ()
    """The same for each sample; None where it cannot be read. Empty by n-grams, where there is one
    model of all samples."""
    worst: float | None = None
    """By n-grams: of the word that is least expected."""

    def as_details(self) -> dict[str, JsonValue]:
        """All of it, for an evaluation's details."""
        worst = {} if self.worst is None else {"worst": self.worst}
        return {"inconsistency": self.inconsistency, "values": [*self.values], **worst}


Compare = Callable[[Sequence[str], Sequence[str]], Steps["list[Inconsistency]"]]
"""From the answer's sentences and the samples to what is known of each sentence."""


def by_similarity(
    similarity: Similarity, texts: Sequence[str], samples: Sequence[str]
) -> Steps[list[Inconsistency]]:
    """1 less the similarity to the sentence of each sample that is most alike."""
    parts = [_sentences(sample) for sample in samples]
    pairs = [(text, part) for text in texts for some in parts for part in some]
    call = LocalCall(partial(similarity.scores, pairs), "similarity")
    scores = iter((yield from ask(call, "the similarity failed")).tolist())
    table = [[unlike([next(scores) for _ in some]) for some in parts] for _ in texts]
    return _rows(table)


def by_nli(nli: NLI, texts: Sequence[str], samples: Sequence[str]) -> Steps[list[Inconsistency]]:
    """The probability that the sample contradicts the sentence."""
    pairs = [(sample, text) for text, sample in product(texts, samples)]
    call = LocalCall(partial(nli.predict, pairs), "nli")
    predicted = yield from ask(call, "the NLI model failed")
    values = iter([contradiction(probabilities) for probabilities in predicted])
    return _rows([[next(values) for _ in samples] for _ in texts])


def by_prompt(
    model: BaseChatModel, prompt: Prompt, texts: Sequence[str], samples: Sequence[str]
) -> Steps[list[Inconsistency]]:
    """0 where the model says that the sample supports the sentence, 1 where it says it does not.

    SelfCheckGPT counts what is neither as 0.5; here it is left out.
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


def by_ngrams(n: int, texts: Sequence[str], samples: Sequence[str]) -> Steps[list[Inconsistency]]:
    """The mean negative log-probability of a sentence's words, of which it has some."""
    yield from ask_all(())
    known = NGrams([*chain.from_iterable(map(_sentences, samples)), *texts], n)
    surprises = [known.surprises(text) for text in texts]
    return [Inconsistency(fmean(surprise), worst=max(surprise)) for surprise in surprises]


def _rows(table: Sequence[Sequence[float | None]]) -> list[Inconsistency]:
    return [Inconsistency(mean(row), tuple(row)) for row in table]


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]
