"""RefChecker: an answer's claims, each held against references (arXiv 2405.14486)."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import Field, PrivateAttr, field_validator

from demur._fingerprints import model_fingerprint, prompts_fingerprint
from demur._frozen import fields_of
from demur._resolve import resolve_model
from demur._text import count_tokens
from demur._undetermined import UndeterminedError, undetermined_with
from demur.evaluators.base import ClaimEvaluator, ExtractedClaims, LabelledClaims
from demur.evaluators.refchecker import checking
from demur.evaluators.refchecker.aggregation import Aggregation, aggregate
from demur.evaluators.refchecker.checking import Checker, WindowFinding
from demur.evaluators.refchecker.context import AskedClaim, as_asked
from demur.evaluators.refchecker.coverage import complete, stating
from demur.evaluators.refchecker.extraction import ClaimForm, Extraction, extract
from demur.evaluators.refchecker.judging import (
    counts_of,
    explanation,
    judged,
    with_quantities,
)
from demur.evaluators.refchecker.prompts import CALIBRATION, RefCheckerPrompts
from demur.evaluators.refchecker.references import Reading, Window, nearest, passages
from demur.evaluators.refchecker.remembering import Same, check_unknown, stable_windows
from demur.evaluators.styled import unstyled
from demur.evaluators.thresholds import (
    ShareThreshold,
    ThresholdOrFile,
    number,
    refuse_foreign,
)
from demur.runtime import CallPolicy, RunnableCall, Steps, ask, is_local, side_by_side
from demur.schema import ABSTAIN, Claim, Evaluation, Sample, Threshold
from demur.similarity import NLI, load_nli

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_MODES = ("auto", "joint", "per_claim", "logprobs")
# What a checker reads at once, in tokens, and what neighbouring windows share. A local model reads
# slowly and loses track; a cross-encoder takes 512 tokens, claim included.
_WINDOW_TOKENS = {"joint": 3000, "per_claim": 3000, "logprobs": 700, "nli": 320}
_OVERLAP = 8  # one part in 8
# References of so many windows are read whole; of longer ones a claim is held against the passages
# nearest to it. Two, so that documents which a second try adds leave those of the first as read.
_READ_WHOLE = 2
_SOFT_THRESHOLD = 0.8
_PROMPTS = RefCheckerPrompts()

NO_REFERENCES = (
    "there is nothing to check the answer against: give the sample contexts or a reference, or "
    "give RefChecker a retriever"
)


class RefChecker(ClaimEvaluator):
    """Split an answer into claims and label each against the references.

    The references are the sample's contexts, and its `reference` if given. Without any, they are
    what `retriever` finds for the question (for the answer, if there is none). An answer that
    states nothing needs none.

    The evaluation's `score` is the entailed share of the claims, in [0, 1]; its `label` is
    "Entailment", "Neutral", "Contradiction", or "Abstain" for an answer that states nothing to
    check (then `score` and `passed` are None). It is undetermined (`error` says why) when the
    answer is empty, there are no references, a model fails, or labels are missing that could
    change `passed`. `details` tell the `granularity`, what became a claim although no extractor
    named it (`fallback_claims`), and the share of the answer that its claims cover (`coverage`).

    Example:
        >>> checker = RefChecker("openai:gpt-4o-mini")
        >>> checker.invoke({"question": q, "answer": a, "contexts": ["..."]}).passed

    Args:
        model: A LangChain chat model, or a name for `resolve_model`.
        checker: "joint": all claims in one call per window of the references. "per_claim": one call
            each. "logprobs": one call each, labelled by log-probabilities, which makes small local
            models usable. "auto": "logprobs" for the local model, else "joint". Or a
            sentence-transformers `CrossEncoder` for NLI, or its name ("org/name" or a folder).
        claims: What a claim is. "sentences": the answer's own sentences, items and values, without
            a model. "triplets" (subject, predicate, object) or "statements" (short ones that are
            understood alone): a model writes them, and what it leaves out is a claim as it stands.
            "auto": "sentences" for the local model, else "triplets".
        aggregation: "strict": any Contradiction, else any Neutral, else Entailment; "major": the
            most frequent label, ties to the worse; "soft": the entailed share against `threshold`.
            An answer passes when the label is Entailment.
        threshold: The entailed share that "soft" asks for, in [0, 1]; the others do not use it. A
            number, or for "soft" a `Threshold` that was chosen from scores of the same
            `fingerprints`, or the file that one was saved in. None: nothing is decided, and
            `passed` is None.
        retriever: A Runnable from a query to documents, for samples without references.
        prompts: Other prompts in place of ours.
        window_tokens: How much of the references is read at once; None: as fits the checker.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError: An argument is out of its range, or names no known mode or model; or a
            `Threshold` was chosen from other scores, or the aggregation is not "soft".
        TypeError: `model` is no chat model, or `checker` no cross-encoder.
        DemurError: The model or the cross-encoder cannot be had.
    """

    model: str | BaseChatModel
    checker: Any = "auto"
    claims: Literal["auto", "sentences"] | ClaimForm = "auto"
    aggregation: Aggregation = "strict"
    threshold: ShareThreshold | None = _SOFT_THRESHOLD
    retriever: Runnable[str, Any] | None = None
    prompts: RefCheckerPrompts = _PROMPTS
    window_tokens: int | None = Field(default=None, ge=50)

    _chat: BaseChatModel = PrivateAttr()
    _mode: str = PrivateAttr()
    _form: Literal["sentences"] | ClaimForm = PrivateAttr()
    _nli: NLI | None = PrivateAttr(default=None)

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        checker: str | CrossEncoder = "auto",
        claims: Literal["auto", "sentences"] | ClaimForm = "auto",
        aggregation: Aggregation = "strict",
        threshold: ThresholdOrFile | None = _SOFT_THRESHOLD,
        retriever: Runnable[str, Any] | None = None,
        prompts: RefCheckerPrompts = _PROMPTS,
        window_tokens: int | None = None,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """See the class."""
        fields = fields_of(locals())
        plain = not isinstance(threshold, (Threshold, str, Path))
        if aggregation != "soft" and plain and threshold not in (None, _SOFT_THRESHOLD):
            warnings.warn(
                f"threshold={threshold} has no effect with aggregation={aggregation!r}, which "
                "passes an answer labelled Entailment; for a share of the claims choose "
                "aggregation='soft'",
                stacklevel=2,
            )
        super().__init__(**fields)

    @field_validator("checker")
    @classmethod
    def _known_checker(cls, value: object) -> object:
        if not isinstance(value, str):
            if not hasattr(value, "predict"):
                raise TypeError(
                    f"checker: expected one of {_MODES} or a sentence-transformers CrossEncoder, "
                    f"got {type(value).__name__}"
                )
        elif value not in _MODES and "/" not in value and not Path(value).is_dir():
            raise ValueError(
                f"unknown checker {value!r}: expected one of {_MODES}, or a cross-encoder's name "
                "such as 'org/name' or its folder"
            )
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Find the parts that the fields name, so that a mistake shows now and not in a call."""
        super().model_post_init(context)
        self._chat = resolve_model(self.model)
        if not isinstance(self.checker, str):
            self._mode, self._nli = "nli", NLI(self.checker)
        elif self.checker in _MODES:
            auto = "logprobs" if is_local(self._chat) else "joint"
            self._mode = auto if self.checker == "auto" else self.checker
        else:
            self._mode, self._nli = "nli", load_nli(self.checker)
        self._form = self._auto_form() if self.claims == "auto" else self.claims
        self._take(self.threshold)

    def _auto_form(self) -> Literal["sentences", "triplets"]:
        return "sentences" if is_local(self._chat) else "triplets"

    def _take(self, threshold: float | Threshold | None) -> None:
        """Refuse a `Threshold` that would not decide here, or decide on other scores."""
        if not isinstance(threshold, Threshold):
            return
        if self.aggregation != "soft":
            raise ValueError(
                f"a Threshold has no effect with aggregation={self.aggregation!r}, which passes an "
                "answer labelled Entailment: choose aggregation='soft', which passes one whose "
                "score reaches it"
            )
        if not 0 <= threshold.value <= 1:
            raise ValueError(
                f"expected a threshold in [0, 1], as scores are, got {threshold.value!r}"
            )
        refuse_foreign(threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What its scores depend on, in texts: scores of other ones cannot be compared with them.

        The model, how claims are made and checked, by which weights where a cross-encoder checks
        them, how much is read at once, and the prompts. What `retriever` would find for samples
        without references cannot be told.
        """
        further: dict[str, object] = {}
        checker = self._mode
        if self._nli is not None:
            checker = f"nli {self._nli.fingerprint}"
        elif self._mode == "logprobs":
            checker = f"logprobs, supported from {checking.SURE}"
            further = {"calibration": CALIBRATION}
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(self._chat),
            "checker": checker,
            "claims": self._form,
            "window": f"{self._window_size} tokens",
            "prompts": prompts_fingerprint(self.prompts, **further),
        }

    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        if not sample.answer.strip():
            raise UndeterminedError("the answer is empty: there is nothing to check")
        if not stating(sample.answer):
            return Evaluation(
                name=self.get_name(),
                label=ABSTAIN,
                explanation="The answer states nothing that could be checked.",
                details={"checker": self._mode},
            )
        nominated = Extraction()
        details: dict[str, Any] = {"checker": self._mode, "granularity": self._form}
        with undetermined_with(details):
            # First: without references a call that finds claims would be in vain.
            referenced = yield from self._referenced(sample)
            if self._form != "sentences":
                nominated = yield from extract(
                    self._chat,
                    sample.answer,
                    sample.question,
                    self._form,
                    self.prompts,
                    is_local(self._chat),
                    sample.preceding,
                )
            completed = complete(nominated.claims, sample, as_fallback=self._form != "sentences")
            details |= completed.details
            if dropped := [*nominated.dropped, *completed.dropped]:
                details["dropped_claims"] = dropped
        if referenced is not sample:
            details["retrieved"] = [
                {"id": document.id, "page_content": document.page_content}
                for document in referenced.contexts
            ]
        return ExtractedClaims(
            referenced, completed.claims, details, (*completed.unfit, *nominated.ungrounded)
        )

    def _referenced(self, sample: Sample) -> Steps[Sample]:
        """The sample with references.

        Raises:
            UndeterminedError: There are none.
        """
        if _any_text(sample.contexts, sample.reference):
            return sample
        if self.retriever is None:
            raise UndeterminedError(NO_REFERENCES)
        query = sample.question or sample.answer
        searching = RunnableCall(self.retriever, query, "retrieval")
        documents = yield from ask(searching, "the retriever failed")
        retrieved = Sample(answer="", contexts=documents)
        plain = unstyled(retrieved)  # as all that an evaluator is given
        contexts = (retrieved if plain is None else plain.sample).contexts
        if not _any_text(contexts, None):
            raise UndeterminedError("the retriever found no text to check the answer against")
        return sample.model_copy(update={"contexts": contexts})

    def _label(self, sample: Sample, claims: Sequence[Claim]) -> Steps[LabelledClaims]:
        shown = as_asked(claims, sample)
        different = list(dict.fromkeys(shown))
        check, identity = self._check()
        readings = self._readings(sample, different)
        checked = yield from side_by_side(
            [
                check_unknown(
                    check,
                    identity,
                    [different[at] for at in reading.claims],
                    reading.windows,
                    sample.question,
                )
                for reading in readings
            ]
        )
        by_text: dict[AskedClaim, tuple[Sequence[Window], list[WindowFinding]]] = {}
        for reading, (findings, _) in zip(readings, checked, strict=True):
            for place, at in enumerate(reading.claims):
                of_claim = [of_window[place] for of_window in findings]
                by_text[different[at]] = reading.windows, of_claim
        labelled = judged(claims, [by_text[text] for text in shown])
        annotated = [
            with_quantities(claim, sample.answer, by_text[text][0])
            for claim, text in zip(labelled.claims, shown, strict=True)
        ]
        details = {
            "checker": self._mode,
            "windows": sum(len(reading.windows) for reading in readings),
            "known": sum(known for _, known in checked),
        }
        return replace(labelled, claims=tuple(annotated), details=details)

    @property
    def _window_size(self) -> int:
        return self.window_tokens or _WINDOW_TOKENS[self._mode]

    def _readings(self, sample: Sample, claims: Sequence[AskedClaim]) -> list[Reading]:
        """What each claim is held against: all of short references, the nearest of long ones."""
        size, lone = self._window_size, self._nli is not None
        contexts, reference = sample.contexts, sample.reference
        pieces = passages(contexts, reference, size, size // _OVERLAP)
        if sum(map(count_tokens, {passage.text for passage in pieces})) > _READ_WHOLE * size:
            texts = [claim.alone for claim in claims]
            return nearest(texts, contexts, reference, size, sample.question, lone)
        # A cross-encoder sees a lone passage more clearly, and its pairs cost little.
        shown = [(passage,) for passage in pieces] if lone else stable_windows(pieces, size)
        return [Reading(tuple(range(len(claims))), tuple(shown))]

    def _check(self) -> tuple[Checker, Hashable]:
        """The checker, and what its findings depend on."""
        chat, prompts = self._chat, self.prompts
        if self._nli is not None:
            return checking.nli(self._nli), Same(self._nli)
        if self._mode == "joint":
            return checking.joint(chat, prompts.joint), ("joint", Same(chat), prompts.joint)
        if self._mode == "per_claim":
            identity = "per_claim", Same(chat), prompts.per_claim
            return checking.per_claim(chat, prompts.per_claim), identity
        identity = "logprobs", Same(chat), prompts.logprobs
        return checking.logprobs(chat, prompts.logprobs, CALIBRATION), identity

    def _conclude(self, claims: Sequence[Claim], details: Mapping[str, Any]) -> Evaluation:
        least = number(self.threshold)
        verdict = aggregate([claim.label for claim in claims], self.aggregation, least)
        missing = [claim for claim in claims if claim.label is None]
        details = {
            **details,
            "counts": counts_of(claims),
            "unlabelled": len(missing),
            "score_bounds": list(verdict.bounds),
        }
        if not verdict.determined:
            raise UndeterminedError(
                f"{len(missing)} of {len(claims)} claims have no label, which could change the "
                f"decision. The first: {missing[0].error}",
                claims=tuple(claims),
                details=details,
            )
        return Evaluation(
            name=self.get_name(),
            score=verdict.score,
            label=verdict.label and verdict.label.value,
            passed=verdict.passed,
            explanation=explanation(claims),
            claims=tuple(claims),
            details=details,
        )


def _any_text(contexts: Sequence[Document], reference: str | None) -> bool:
    return any(document.page_content.strip() for document in contexts) or bool(
        reference and reference.strip()
    )
