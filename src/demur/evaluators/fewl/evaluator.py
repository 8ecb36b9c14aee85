"""Score an answer without a gold answer, by weighted reference models (FEWL, arXiv 2402.10412)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from langchain_core.language_models import BaseChatModel
from pydantic import Field, JsonValue, PrivateAttr, field_validator

from demur._system import warn_once_a_minute
from demur.evaluators.base import Evaluator
from demur.evaluators.fewl import refusals, reporting, terms
from demur.evaluators.fewl.fitting import Fitted, Learned, fit
from demur.evaluators.fewl.formula import DivergenceName, Normalization
from demur.evaluators.fewl.learning import Learner
from demur.evaluators.fewl.neighbors import KnownQuestion, Neighbor, NeighborStore
from demur.evaluators.fewl.prompts import FEWLPrompts
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.evaluators.fewl.terms import Premise, Similarities, Texts, Weighting
from demur.evaluators.thresholds import (
    AnyThreshold,
    ThresholdOrFile,
    number,
    refuse_foreign,
)
from demur.local import resolve_model
from demur.runtime import (
    CallPolicy,
    LocalCall,
    Steps,
    UndeterminedError,
    ask,
    attempted,
    drive,
    fields_of,
)
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Sample
from demur.similarity import COSINE, Similarity, SimilarityLike, resolve_similarity

_log = logging.getLogger(__name__)

NeighborChoice = Literal["nearest", "random"]
_N_ANSWERS, _N_WRONG, _K_NEIGHBORS, _CEILING = 5, 25, 25, 0.8

_UNIFORM = (
    "%s has too few usable pairs of wrong and corrected answers for some questions, and gives the "
    "references the same weight there (details['warnings'] says where): another generator may "
    "write better pairs"
)
_PROMPTS = FEWLPrompts()

_AT_ONCE = 16


class FEWL(Evaluator):
    """Score an answer by how much it resembles the answers of reference models.

    The references are weighted by their expertise. A laziness penalty lowers the score of an answer
    that resembles what the references say of other questions. "v1" and "v2" below are the versions
    of the paper (arXiv 2402.10412).

    No gold answer is needed, but at least one reference must know the right answer (v1, section 6).
    The references' answers are kept in `neighbors`, where the penalty finds them for later
    questions. A new question costs one call of each reference model and one call of the generator.
    Every further answer to it costs no call.

    The evaluation's `score` is that of equation 4. Higher is better; with total variation, it lies
    within (-0.5, 0.5). Scores of other models, similarities or options are not comparable. With a
    `threshold`, `label` is "factual" or "non-factual". A rejected answer has the `failure` "vague"
    if the penalty is in force and the answer resembles what the references say of other questions
    at least as much as what they say of this question. Otherwise the failure is "other".

    `details` holds every term, so that you can work out the score by hand:

    - `answers`: the reference answers; `counted`: the positions of those that count.
    - `weights`, `similarities`, `expertise`, `penalties`: one number for each reference answer, in
      their order. `penalties` is None without the penalty, and `expertise` is None if it is
      unknown.
    - `penalty`: whether the penalty was in force.
    - `pairs_used`, `pairs_dropped`: how many pairs of wrong and corrected answers decided the
      weights, and how many were dropped for which reason.
    - `neighbors_used`, `neighbors`: how many neighbouring questions the penalty looked at, and
      which.
    - `warnings`: what makes the score weaker than it should be.

    The evaluation is undetermined, and `error` says why, if there is no question, if the answer is
    empty, or if a reference failed. It is also undetermined with "ideal" and no labelled answers,
    with "best" and no expertise, and with a threshold and the penalty but no neighbouring question.

    Examples:
        >>> fewl = FEWL("openai:gpt-4o-mini", neighbors=NeighborStore("neighbors"))
        >>> fewl.invoke({"question": q, "answer": a}).score

    Args:
        reference_models: One chat model, which gives several diversified answers in one call, or a
            list of models, which give one answer each. Each is a chat model or a name for
            `resolve_model`.
        generator: The model that writes the wrong and corrected answers. None: the first reference.
        similarity: What compares two texts. A name: "cosine" of embeddings, "hhem", "hhem-1.0",
            "rouge", "bleu", or that of a cross-encoder or its folder. Or a model that scores pairs
            or embeds texts, or a function from a list of pairs to as many numbers in [0, 1].
        n_answers: How many answers a single reference model gives (the papers: 5).
        n_wrong: How many pairs of wrong and corrected answers the generator writes (the papers:
            25).
        k_neighbors: How many other questions the penalty looks at (the papers: 25).
        max_neighbor_similarity: The cosine from which on another question counts as a paraphrase
            and is no neighbour (v1, section D.4).
        weighting: How the references are weighted. "expertise": by Algorithm 1. "agreement": the
            same, but each reference is asked with which wrong and corrected answers it agrees,
            which costs one more call for each reference answer (v1, section 2.1 and figure 4).
            "uniform": all the same. "best": only the reference with the highest expertise counts
            (v2, section D.10).
            "ideal": by expertise on labelled answers in `Sample.metadata["correct"]` and
            `["incorrect"]`, for tables only (v1, table 2). "first": only the first reference answer
            counts, which is the "single" of the papers' tables.
        penalty: Whether the laziness penalty is subtracted. "auto": unless the similarity is the
            cosine of embeddings, under which the penalty preferred wrong answers on CHALE.
        divergence: "tv" (total variation), "js" (Jensen-Shannon) or "kl" (v2, section D.11).
        normalization: "paper": the weights sum to 1. "mean_one": the weights are N times as large
            for N reference answers, so that truthfulness keeps its scale beside the penalty.
        temperature: The temperature of the softmax over expertise, greater than 0.
        neighbors: The store of what the references said of other questions. None: a store in the
            memory of this process. It is empty at first, and again when the evaluator is unpickled.
        threshold: The least score of an answer that passes: a number, a `Threshold` that was chosen
            from scores with the same `fingerprints`, or the file that a `Threshold` was saved in.
            None: no answer passes or fails.
        neighbor_choice: "nearest" or "random": which other questions the penalty looks at (v1,
            table 9; v2, table 11).
        min_pairs: The least number of usable pairs that tell the references apart. With fewer, the
            weights are uniform: `details["warnings"]` says so, and the log does at most once a
            minute. With "best", the evaluation is then undetermined.
        premise: The text that comes first for the similarity, as the premise. "answer": the answer
            that is judged, as in the papers; the similarity then misses what the answer adds to the
            reference. "reference": the reference; the similarity then misses what the answer leaves
            out.
        prompts: Prompts that replace demur's own.
        name: The name in traces. None: the name of the class.
        call_policy: Retries, time limits and concurrency of the calls. None: the defaults for each
            model.

    Raises:
        ValueError: An argument is out of its range, `neighbors` holds answers of other references
            or to other prompts, or a `Threshold` was chosen from other scores.
        TypeError: A reference is not a chat model, or `similarity` cannot score pairs.
        DemurError: A model or a package is not available.
    """

    reference_models: Any
    generator: Any = None
    similarity: Any = "cosine"
    n_answers: int = Field(default=_N_ANSWERS, ge=1)
    n_wrong: int = Field(default=_N_WRONG, ge=1)
    k_neighbors: int = Field(default=_K_NEIGHBORS, ge=1)
    max_neighbor_similarity: float = Field(default=_CEILING, gt=-1, le=1, allow_inf_nan=False)
    weighting: Weighting = "expertise"
    penalty: bool | Literal["auto"] = "auto"
    divergence: DivergenceName = "tv"
    normalization: Normalization = "mean_one"
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    neighbors: NeighborStore | None = None
    threshold: AnyThreshold | None = None
    neighbor_choice: NeighborChoice = "nearest"
    min_pairs: int = Field(default=3, ge=1)
    premise: Premise = "answer"
    prompts: FEWLPrompts = _PROMPTS

    _learner: Learner = PrivateAttr()
    _alike: Similarity = PrivateAttr()
    _store: NeighborStore = PrivateAttr()

    def __init__(
        self,
        reference_models: str | BaseChatModel | Sequence[str | BaseChatModel],
        *,
        generator: str | BaseChatModel | None = None,
        similarity: SimilarityLike = "cosine",
        n_answers: int = _N_ANSWERS,
        n_wrong: int = _N_WRONG,
        k_neighbors: int = _K_NEIGHBORS,
        max_neighbor_similarity: float = _CEILING,
        weighting: Weighting = "expertise",
        penalty: bool | Literal["auto"] = "auto",
        divergence: DivergenceName = "tv",
        normalization: Normalization = "mean_one",
        temperature: float = 1.0,
        neighbors: NeighborStore | None = None,
        threshold: ThresholdOrFile | None = None,
        neighbor_choice: NeighborChoice = "nearest",
        min_pairs: int = 3,
        premise: Premise = "answer",
        prompts: FEWLPrompts = _PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make an evaluator; the class describes the arguments."""
        super().__init__(**fields_of(locals()))

    @field_validator("reference_models")
    @classmethod
    def _some(cls, value: object) -> object:
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError("expected a chat model or several, got an empty list")
            return tuple(value)
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the models and the similarity, so that a mistake shows before the first call."""
        super().model_post_init(context)
        several = isinstance(self.reference_models, tuple)
        models = tuple(
            map(resolve_model, self.reference_models if several else (self.reference_models,))
        )
        generator = models[0] if self.generator is None else resolve_model(self.generator)
        diversified = None if several else self.n_answers
        asks = ReferenceModels(models, generator, diversified, self.n_wrong, self.prompts)
        self._alike = resolve_similarity(self.similarity)
        self._store = NeighborStore() if self.neighbors is None else self.neighbors
        self._store.bind(asks.who, asks.how)
        by_agreement = self.weighting == "agreement"
        self._learner = Learner(asks, self._store, by_agreement, self.min_pairs)
        refuse_foreign(self.threshold, self)

    # --- The evaluation ---------------------------------------------------------------------

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        unfit = refusals.sample(sample, self.weighting)
        if unfit is not None:
            raise UndeterminedError(unfit)
        question = str(sample.question)
        known = yield from self._learner.learn(question, self.needs_pairs)
        if self.weighting == "best" and not self._learner.enough(known.pairs):
            raise UndeterminedError(refusals.no_best(known, self.min_pairs))
        near: Sequence[Neighbor] = ()
        if self.needs_neighbors:
            finding = LocalCall(partial(self._neighbors, question), "neighbors")
            near = yield from ask(finding, "neighbouring questions cannot be found")
            if not near and self.threshold is not None:
                raise UndeterminedError(refusals.NO_NEIGHBOR)
        texts = self._texts(sample, known, near)
        scoring = LocalCall(partial(self._alike.scores, texts.pairs()), "similarity")
        scores = yield from ask(scoring, "the similarity failed")
        return self._conclude(texts, known, near, texts.read(scores))

    def fit(
        self,
        questions: Iterable[str],
        *,
        pairs: bool = False,
        at_once: int = _AT_ONCE,
        progress: Callable[[Fitted], None] | None = None,
    ) -> Fitted:
        """Have the references answer questions now, so that later questions have neighbours.

        Without the penalty, `fit` only saves the calls that scoring the same questions later would
        make.

        Questions whose answers are known are not asked again, even after an interrupt or a kill. A
        question is kept as soon as all its calls have ended. If some calls failed, the replies of
        the others are kept.

        Args:
            questions: Any questions; repeated questions count once.
            pairs: Whether to ask for wrong and corrected answers too. Questions that are scored
                themselves need them.
            at_once: How many questions are asked at the same time. The call policy's own limit
                applies too.
            progress: A function that is called at the start and after each question.

        Returns:
            How many questions are known now, which of them failed and why, and the usage.

        Raises:
            TypeError: `questions` is a single text.
            ValueError: A question is blank, or `at_once` is less than 1.
        """
        learn = partial(self._fit_one, with_pairs=pairs and self.needs_pairs)
        return fit(learn, questions, at_once, progress)

    def _fit_one(self, question: str, with_pairs: bool) -> Learned:
        learning = attempted(self._learner.learn(question, with_pairs))
        learned, costs = drive(learning, {}, self.call_policy)
        return question, learned.error, costs.total

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return texts that say what the scores depend on: scores with other texts do not compare.

        The keys are `reference_models`, `pairs` (the model that writes them), `prompts`,
        `similarity`, and `formula` (the options that decide which terms make the score). The
        questions in the store are not included, although the penalty depends on them.
        """
        asks = self._learner.asks
        by_agreement = self.weighting == "agreement"
        formula = {
            # "agreement" has two texts, as in thresholds that were saved when it was two options.
            "weighting": "expertise" if by_agreement else self.weighting,
            "penalty": self.needs_neighbors,
            "divergence": self.divergence,
            "normalization": self.normalization,
            "temperature": self.temperature,
            "expertise": "agreement" if by_agreement else "similarity",
            "k_neighbors": self.k_neighbors,
            "max_neighbor_similarity": self.max_neighbor_similarity,
            "neighbor_choice": self.neighbor_choice,
            "min_pairs": self.min_pairs,
            "premise": self.premise,
        }
        return {
            "reference_models": asks.who,
            "pairs": asks.pairs_by,
            "prompts": asks.wording,
            "similarity": self._alike.fingerprint,
            "formula": ", ".join(f"{name}={value}" for name, value in formula.items()),
        }

    @property
    def needs_pairs(self) -> bool:
        """Return whether the weights depend on wrong and corrected answers."""
        return self.weighting in ("expertise", "agreement", "best")

    @property
    def needs_neighbors(self) -> bool:
        """Return whether the laziness penalty is in force, which needs neighbouring questions."""
        return self._alike.name != COSINE if self.penalty == "auto" else self.penalty

    def _neighbors(self, question: str) -> list[Neighbor]:
        find = self._store.random if self.neighbor_choice == "random" else self._store.nearest
        return find(question, self.k_neighbors, self.max_neighbor_similarity)

    def _texts(self, sample: Sample, known: KnownQuestion, near: Sequence[Neighbor]) -> Texts:
        corrected: Sequence[str] = ()
        wrong: Sequence[str] = ()
        if self.weighting == "ideal":
            corrected, wrong = sample.metadata["correct"], sample.metadata["incorrect"]
        elif self.weighting in ("expertise", "best") and self._learner.enough(known.pairs):
            wrong, corrected = zip(*known.pairs.usable, strict=True)
        answers = known.answers[:1] if self.weighting == "first" else known.answers
        return Texts(
            sample.answer,
            answers,
            tuple(corrected),
            tuple(wrong),
            tuple(neighbor.answers for neighbor in near),
            self.premise,
        )

    def _conclude(
        self,
        texts: Texts,
        known: KnownQuestion,
        near: Sequence[Neighbor],
        similarities: Similarities,
    ) -> Evaluation:
        expertise = similarities.expertise
        if self.weighting == "agreement" and known.agreement and self._learner.enough(known.pairs):
            expertise = np.asarray(known.agreement)
        score = terms.score(
            similarities,
            expertise,
            self.weighting == "best",
            self.divergence,
            self.normalization,
            self.temperature,
        )
        least = number(self.threshold)
        passed = None if least is None else score.value >= least
        return Evaluation(
            name=self.get_name(),
            score=score.value,
            label={True: FACTUAL, False: NON_FACTUAL, None: None}[passed],
            passed=passed,
            failure=reporting.failure(score) if passed is False else None,
            explanation=reporting.explanation(score),
            details={
                **reporting.terms(score, texts.reference_answers),
                **reporting.pairs(known if self.needs_pairs else None, expertise is not None),
                **reporting.neighbors(near, self.needs_neighbors),
                "warnings": self._warnings(known, expertise is not None, len(near)),
            },
        )

    def _warnings(self, known: KnownQuestion, skilled: bool, near: int) -> list[JsonValue]:
        """Return a text for each thing that makes the score weaker than it should be."""
        notes: list[JsonValue] = []
        if self.needs_pairs and not skilled:
            warn_once_a_minute(_log, self.get_name(), _UNIFORM, self.get_name())
            notes.append(reporting.uniform(known, self.min_pairs))
        if self.needs_neighbors and near < self.k_neighbors:
            notes.append(reporting.thin(near, self.k_neighbors))
        return notes
