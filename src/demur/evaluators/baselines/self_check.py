"""Score an answer by whether the model says the same when it is asked again (SelfCheck)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any, ClassVar, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import Field, JsonValue, PrivateAttr

from demur._text import sentences, words
from demur.evaluators.base import Evaluator
from demur.evaluators.baselines.bertscore import load_bertscore
from demur.evaluators.baselines.comparing import (
    Compare,
    by_nli,
    by_prompt,
    by_similarity,
    by_unigrams,
)
from demur.evaluators.baselines.prompts import SelfCheckPrompts
from demur.evaluators.thresholds import (
    AnyThreshold,
    ThresholdOrFile,
    number,
    refuse_foreign,
)
from demur.evaluators.verdicts import refuse_empty
from demur.local import SMALL, SmallJudge, resolve_model
from demur.runtime import (
    CallPolicy,
    ChatCall,
    Steps,
    UndeterminedError,
    ask_all,
    bounded,
    fields_of,
    undetermined_with,
)
from demur.runtime.prompting import without_delimiters
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Failure, Sample, Usage
from demur.schema.fingerprints import model_fingerprint, prompts_fingerprint
from demur.similarity import NLI, Similarity, SimilarityLike, load_nli, resolve_similarity

_SAMPLE_TOKENS = 256

Method = Literal["bertscore", "nli", "prompt", "ngram", "embedding"]


class SelfCheck(Evaluator):
    """Compare each sentence of the answer with other answers that were sampled for its question.

    The idea is that a model repeats what it knows, and does not repeat what it makes up (Manakul et
    al. 2023, arXiv 2303.08896). The samples are the list of texts in `Sample.metadata["samples"]`,
    if there is one. Otherwise the model is asked the sample's question `n_samples` times. Use the
    model that gave the answer: samples of another model differ for other reasons too.

    Each sentence has an inconsistency in [0, 1], which is the mean over the samples. The answer's
    inconsistency is the mean over its sentences, and `score` is 1 less that. By "ngram", the
    inconsistency of a sentence is the mean negative log-probability of its words, which has no
    upper bound. Then `score` is e to the power of minus the answer's inconsistency, in (0, 1], a
    geometric mean of probabilities. With a `threshold`, `label` is "factual" or "non-factual", and
    `failure` is "other" for the latter.

    `details["sentences"]` has `start`, `end`, `text`, `inconsistency` and `values` for each
    sentence. `values` has one number for each sample, or None if a reply cannot be read, or if the
    small judge cannot read the sentence. By "ngram" it is empty, and `worst` has the value of the
    least expected word. `details["samples"]` has the samples, and `details["unread"]` the number of
    missing values.

    The evaluation is undetermined if the answer is empty, there are neither samples nor a question
    and a model, a sample could not be obtained, or no value of a sentence can be read.

    Args:
        model: The model that gives the samples and, with "prompt", compares: a chat model, or a
            name such as "openai:gpt-4o-mini" (see `resolve_model`). None: each `Sample` has its
            samples, and `method` needs no model.
        method: How a sentence is compared with a sample. "embedding": 1 less the similarity to the
            sample's most similar sentence. "bertscore": the same by BERTScore, as in the papers.
            "nli": the probability that the sample contradicts the sentence; by the small judge,
            that the sample does not support it. "prompt": the model is asked whether the sample
            supports the sentence, in a call for each pair. "ngram": the probability of the
            sentence's words by a unigram model of all samples and the answer.
        n_samples: The number of samples that are asked for if none are given, at least 1.
        temperature: The temperature at which samples are asked for, at least 0. None: the model's
            own, for models that take no temperature.
        threshold: The lowest score with which an answer passes. Give a number, a `Threshold` that
            was chosen from scores with the same `fingerprints`, or the file that it was saved in.
            None: nothing is decided.
        encoder: With "bertscore", the name or the folder of a transformers encoder.
        nli: With "nli", the name or the folder of a three-way cross-encoder, or an `NLI`; or
            "small", the small judge of `demur-judge`, which needs neither torch nor a download.
        similarity: With "embedding", any similarity that `FEWL` takes.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of model calls. None: defaults that
            fit the model.

    Raises:
        ValueError: An argument is out of its range, "prompt" has no model, or a `Threshold` was
            chosen from other scores.
        TypeError: `model` is not a chat model, or `similarity` is not a similarity.
        DemurError: A model or a package is not available.
    """

    model: Any = None
    method: Method = "embedding"
    n_samples: int = Field(default=5, ge=1)
    temperature: float | None = Field(default=1.0, ge=0, allow_inf_nan=False)
    threshold: AnyThreshold | None = None
    encoder: str = "roberta-large"
    nli: Any = "cross-encoder/nli-deberta-v3-base"
    similarity: Any = "cosine"

    _chat: BaseChatModel | None = PrivateAttr()
    _prompts: ClassVar[SelfCheckPrompts] = SelfCheckPrompts()
    _compare: Compare = PrivateAttr()
    _by: Similarity | NLI | SmallJudge | None = PrivateAttr(default=None)

    def __init__(
        self,
        model: str | BaseChatModel | None = None,
        *,
        method: Method = "embedding",
        n_samples: int = 5,
        temperature: float | None = 1.0,
        threshold: ThresholdOrFile | None = None,
        encoder: str = "roberta-large",
        nli: str | NLI = "cross-encoder/nli-deberta-v3-base",
        similarity: SimilarityLike = "cosine",
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the names of models, so that a wrong name is reported before the first call."""
        super().model_post_init(context)
        self._chat = None if self.model is None else resolve_model(self.model)
        self._compare = self._comparison()
        refuse_foreign(self.threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on beside the sample, as texts by name.

        The texts identify the method, the weights of its similarity if it has one, the model and
        the way of sampling, and the prompts. They do not say which model gave samples that come
        with the `Sample`.
        """
        drawn = f"{self.n_samples} at temperature {self.temperature}"
        return {
            "evaluator": type(self).__qualname__,
            "method": "ngram, n=1" if self.method == "ngram" else self.method,
            **({} if self._by is None else {"similarity": self._by.fingerprint}),
            **({} if self._chat is None else {"model": model_fingerprint(self._chat)}),
            "samples": "given" if self._chat is None else drawn,
            "prompts": prompts_fingerprint(self._prompts),
        }

    def _comparison(self) -> Compare:
        if self.method == "ngram":
            return by_unigrams
        if self.method == "nli":
            nli = self.nli if isinstance(self.nli, NLI) else _load_nli(self.nli)
            self._by = nli
            return partial(by_nli, nli)
        if self.method in ("bertscore", "embedding"):
            self._by = alike = (
                load_bertscore(self.encoder)
                if self.method == "bertscore"
                else resolve_similarity(self.similarity)
            )
            return partial(by_similarity, alike)
        if self._chat is None:
            raise ValueError(
                "method='prompt' asks a model whether a sample supports a sentence: give one, "
                "SelfCheck(model, method='prompt')"
            )
        return partial(by_prompt, self._chat, self._prompts.support)

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
        """Return the samples that the sample has, or that the model gives.

        Raises:
            UndeterminedError: There are no samples.
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
        """Ask the model for samples, and return them with their usage."""
        options = bounded(model, _SAMPLE_TOKENS)
        if self.temperature is not None:
            options["temperature"] = self.temperature
        messages = self._prompts.sample.messages(question=question)
        calls = [ChatCall(model, messages, "sample", options, at) for at in range(self.n_samples)]
        outcomes = yield from ask_all(calls)
        failed = sum(outcome.error is not None for outcome in outcomes)
        failing = f"{failed} of {self.n_samples} samples could not be obtained"
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
            error = f"no comparison of this sentence with a sample can be read: {unread!r:.200}"
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


def _load_nli(name: str) -> NLI | SmallJudge:
    return SmallJudge() if name == SMALL else load_nli(name)
