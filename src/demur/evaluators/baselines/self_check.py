"""SelfCheck: is what an answer says what the model says when it is asked again?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import Field, JsonValue, PrivateAttr

from demur._fingerprints import model_fingerprint, prompts_fingerprint
from demur._frozen import fields_of
from demur._resolve import resolve_model
from demur._text import sentences, words
from demur._undetermined import UndeterminedError, undetermined_with
from demur.evaluators.base import Evaluator
from demur.evaluators.baselines.bertscore import load_bertscore
from demur.evaluators.baselines.comparing import (
    Compare,
    by_ngrams,
    by_nli,
    by_prompt,
    by_similarity,
)
from demur.evaluators.baselines.prompts import SelfCheckPrompts
from demur.evaluators.baselines.verdicts import refuse_empty
from demur.evaluators.thresholds import (
    AnyThreshold,
    ThresholdOrFile,
    number,
    refuse_foreign,
)
from demur.prompting import without_delimiters
from demur.runtime import CallPolicy, ChatCall, Steps, ask_all, bounded
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Failure, Sample, Usage
from demur.similarity import NLI, Similarity, SimilarityLike, load_nli, resolve_similarity

_SAMPLE_TOKENS = 256

Method = Literal["bertscore", "nli", "prompt", "ngram", "embedding"]

_PROMPTS = SelfCheckPrompts()


class SelfCheck(Evaluator):
    """Compare each sentence of the answer with other answers that were sampled to its question.

    What a model knows it says each time, and what it makes up it says once (Manakul et al. 2023,
    arXiv 2303.08896). The samples are `Sample.metadata["samples"]`, a list of texts, where that
    stands; else the model is asked the sample's question `n_samples` times. The model should be the
    one that answered: samples of another differ for other reasons.

    Each sentence has an inconsistency in [0, 1], the mean over the samples, and the answer's is the
    mean over its sentences; `score` is 1 less that. By n-grams a sentence's inconsistency is the
    mean negative log-probability of its words, which has no upper bound; there `score` is e to the
    power of its negative, in (0, 1]: the geometric mean of the probabilities. With a `threshold`,
    `label` is "factual" or "non-factual", and `failure` "other" for the latter.

    `details["sentences"]` holds for each sentence `start`, `end`, `text`, `inconsistency`, `values`
    (one per sample, None where a reply cannot be read; empty by n-grams) and by n-grams `worst` (of
    the least expected word); `details["samples"]` the samples, `details["unread"]` how many values
    are missing. Undetermined: no samples and no question or model, a sample that cannot be had, a
    sentence of which no value can be read, an empty answer.

    Args:
        model: Who gives the samples and, with "prompt", compares: a chat model, or a name for
            `resolve_model`. None: samples come with each `Sample`, and `method` needs no model.
        method: "embedding": 1 less the similarity to the sentence of a sample that is most alike.
            "bertscore": the same by BERTScore, as in the papers. "nli": how likely a sample
            contradicts the sentence. "prompt": the model is asked whether a sample supports the
            sentence, a call for each pair. "ngram": how likely the sentence's words are by a model
            of n-grams trained on the samples and the answer.
        n_samples: How many samples are asked for, where none are given.
        temperature: At which they are asked for; None: the model's own, for those that take none.
        threshold: Answers that score less fail: a number, or a `Threshold` that was chosen from
            scores of the same `fingerprints`, or the file that one was saved in. None: nothing is
            decided.
        encoder: With "bertscore": a transformers encoder's name or folder.
        layer: With "bertscore": see `load_bertscore`.
        nli: With "nli": a three-way cross-encoder's name or folder, or an `NLI`.
        similarity: With "embedding": what `resolve_similarity` takes.
        n: With "ngram": words in a gram.
        prompts: Other prompts in place of ours.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError: An argument is out of its range, "prompt" has no model, or a `Threshold` was
            chosen from other scores.
        TypeError: The model is no chat model, or `similarity` nothing that scores pairs.
        DemurError: A model or a package is not at hand.
    """

    model: Any = None
    method: Method = "embedding"
    n_samples: int = Field(default=5, ge=1)
    temperature: float | None = Field(default=1.0, ge=0, allow_inf_nan=False)
    threshold: AnyThreshold | None = None
    encoder: str = "roberta-large"
    layer: int | None = None
    nli: Any = "cross-encoder/nli-deberta-v3-base"
    similarity: Any = "cosine"
    n: int = Field(default=1, ge=1)
    prompts: SelfCheckPrompts = _PROMPTS

    _chat: BaseChatModel | None = PrivateAttr()
    _compare: Compare = PrivateAttr()
    _by: Similarity | NLI | None = PrivateAttr(default=None)

    def __init__(
        self,
        model: str | BaseChatModel | None = None,
        *,
        method: Method = "embedding",
        n_samples: int = 5,
        temperature: float | None = 1.0,
        threshold: ThresholdOrFile | None = None,
        encoder: str = "roberta-large",
        layer: int | None = None,
        nli: str | NLI = "cross-encoder/nli-deberta-v3-base",
        similarity: SimilarityLike = "cosine",
        n: int = 1,
        prompts: SelfCheckPrompts = _PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """See the class."""
        super().__init__(**fields_of(locals()))

    def model_post_init(self, context: Any, /) -> None:
        """Find the parts that the fields name, so that a mistake shows now and not in a call."""
        super().model_post_init(context)
        self._chat = None if self.model is None else resolve_model(self.model)
        self._compare = self._comparison()
        refuse_foreign(self.threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What its scores depend on, in texts: scores of other ones cannot be compared with them.

        The method, by which weights it compares where it has some, who gives the samples and how,
        and the prompts. Samples that come with the `Sample` may be of anyone, which cannot be told.
        """
        drawn = f"{self.n_samples} at temperature {self.temperature}"
        return {
            "evaluator": type(self).__qualname__,
            "method": f"ngram, n={self.n}" if self.method == "ngram" else self.method,
            **({} if self._by is None else {"similarity": self._by.fingerprint}),
            **({} if self._chat is None else {"model": model_fingerprint(self._chat)}),
            "samples": "given" if self._chat is None else drawn,
            "prompts": prompts_fingerprint(self.prompts),
        }

    def _comparison(self) -> Compare:
        if self.method == "ngram":
            return partial(by_ngrams, self.n)
        if self.method == "nli":
            self._by = nli = self.nli if isinstance(self.nli, NLI) else load_nli(self.nli)
            return partial(by_nli, nli)
        if self.method in ("bertscore", "embedding"):
            self._by = alike = (
                load_bertscore(self.encoder, self.layer)
                if self.method == "bertscore"
                else resolve_similarity(self.similarity)
            )
            return partial(by_similarity, alike)
        if self._chat is None:
            raise ValueError(
                "method='prompt' asks a model whether a sample supports a sentence: give one, "
                "SelfCheck(model, method='prompt')"
            )
        return partial(by_prompt, self._chat, self.prompts.support)

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        refuse_empty(sample)
        samples = yield from self._samples(sample)
        spans = [
            (start, end)
            for start, end in sentences(sample.answer)
            if any(words(sample.answer[start:end]))
        ]
        if not spans:
            raise UndeterminedError("the answer holds no words")
        texts = [sample.answer[start:end] for start, end in spans]
        details: dict[str, JsonValue] = {"method": self.method, "samples": [*samples]}
        with undetermined_with(details):
            inconsistencies = yield from self._compare(texts, samples)
        by_sentence = [
            {"start": start, "end": end, "text": text, **compared.as_details()}
            for (start, end), text, compared in zip(spans, texts, inconsistencies, strict=True)
        ]
        unread = sum(inconsistency.values.count(None) for inconsistency in inconsistencies)
        details |= {"sentences": [*by_sentence], "unread": unread}
        return self._conclude(
            texts, [compared.inconsistency for compared in inconsistencies], details
        )

    def _samples(self, sample: Sample) -> Steps[list[str]]:
        """The samples.

        Raises:
            UndeterminedError: There are none.
        """
        supplied = sample.metadata.get("samples")
        if supplied is not None:
            texts = supplied if isinstance(supplied, (list, tuple)) else ()
            if texts and all(isinstance(text, str) and text.strip() for text in texts):
                return list(texts)
            raise UndeterminedError(
                f"metadata['samples']: expected a list of texts, none empty, got {supplied!r:.200}"
            )
        question = sample.question or ""
        if self._chat is None or not question.strip():
            lacking = "model" if self._chat is None else "question"
            raise UndeterminedError(
                "there are no samples to compare the answer with: give some in "
                f"metadata['samples'], or a {lacking} so that some can be asked for"
            )
        texts, _ = yield from self._drawn(self._chat, question)
        return texts

    def _drawn(self, model: BaseChatModel, question: str) -> Steps[tuple[list[str], Usage]]:
        """Samples that the model is asked for, and what they cost."""
        options = bounded(model, _SAMPLE_TOKENS)
        if self.temperature is not None:
            options["temperature"] = self.temperature
        messages = self.prompts.sample.messages(question=question)
        calls = [ChatCall(model, messages, "sample", options, at) for at in range(self.n_samples)]
        outcomes = yield from ask_all(calls)
        failed = sum(outcome.error is not None for outcome in outcomes)
        failing = f"{failed} of {self.n_samples} samples cannot be had"
        replies = [without_delimiters(outcome.expect(failing).text) for outcome in outcomes]
        if not all(replies):
            raise UndeterminedError("the model's answer to the question is empty")
        return replies, sum((outcome.usage for outcome in outcomes), Usage())

    def _conclude(
        self,
        texts: Sequence[str],
        inconsistencies: Sequence[float | None],
        details: dict[str, JsonValue],
    ) -> Evaluation:
        known = [value for value in inconsistencies if value is not None]
        if len(known) < len(texts):
            unread = texts[inconsistencies.index(None)]
            error = f"the replies about a sentence cannot be read, or failed: {unread!r:.200}"
            raise UndeterminedError(error, details=details)
        inconsistency = fmean(known)
        score = math.exp(-inconsistency) if self.method == "ngram" else 1 - inconsistency
        least = number(self.threshold)
        passed = None if least is None else score >= least
        worst = texts[known.index(max(known))]
        return Evaluation(
            name=self.get_name(),
            score=score,
            label={True: FACTUAL, False: NON_FACTUAL, None: None}[passed],
            passed=passed,
            failure=Failure.OTHER if passed is False else None,
            explanation=(
                f"Its sentences differ from the samples by {inconsistency:.2f} on average, and "
                f"most does: {worst!r:.200}"
            ),
            details={**details, "inconsistency": inconsistency},
        )
