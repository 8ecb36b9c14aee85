"""Define the detectors that can be compared: named configurations of evaluators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel

from demur.comparing.floors import Floor
from demur.comparing.sampling import SharedSelfCheck
from demur.evaluators import (
    CONFIGURATIONS,
    FEWL,
    AllFalse,
    AnswerRelevance,
    Cascade,
    Evaluator,
    Judge,
    LMvsLM,
    RefChecker,
    ReverseValidation,
    SelfContradiction,
    ZeroShot,
)
from demur.local import SMALL, is_served
from demur.runtime import is_local
from demur.schema import Sample
from demur.similarity import NAMED

Needs: TypeAlias = Callable[[Sample], "str | None"]
"""A function that says what a sample lacks, or None if it lacks nothing."""
MOST_CHEAP = 3
"""The largest number of model calls for each answer that does not make a detector expensive."""
_NLI = "cross-encoder/nli-deberta-v3-base"


def _nothing(sample: Sample) -> str | None:
    return None


def _question(sample: Sample) -> str | None:
    return None if (sample.question or "").strip() else "there is no question"


def has_sources(sample: Sample) -> bool:
    """Return whether there is a text to check the answer of a sample against."""
    texts = [sample.reference, *(context.page_content for context in sample.contexts)]
    return any(text and text.strip() for text in texts)


def _sources(sample: Sample) -> str | None:
    return None if has_sources(sample) else "there are neither contexts nor a reference"


def is_entity(value: object) -> bool:
    """Return whether a value in a sample's metadata can name the entity; None leaves it open.

    Without a name, the entity is looked for in the question and the answer.
    """
    return value is None or (isinstance(value, str) and any(map(str.isalnum, value)))


def _entity(sample: Sample) -> str | None:
    entity = sample.metadata.get("entity")
    if is_entity(entity):
        return None
    return f"metadata 'entity' is no name of what the answer is about: {entity!r:.60}"


def _samples(sample: Sample) -> str | None:
    return None if "samples" in sample.metadata else _question(sample)


def _any_model(model: BaseChatModel) -> str | None:
    return None


def _gives_logprobs(model: BaseChatModel) -> str | None:
    # By the type's name, because an import of the class would import langchain-openai.
    if is_local(model) or model._llm_type == "openai-chat":
        return None
    return "the model gives no log-probabilities"


def _has_adapter(model: BaseChatModel) -> str | None:
    if getattr(model, "judging", None) is not None:
        return None
    return "the model has no adapter of demur's"


@dataclass(frozen=True)
class Detector:
    """Describe a configuration of an evaluator that can be compared."""

    name: str
    what: str
    """How the detector judges, in a few words."""
    calls: int | None
    """The number of model calls for a short answer; None if it grows with the answer."""
    make: Callable[..., Evaluator]
    """A function from a chat model, with `name` and `call_policy`, to the evaluator. It raises
    DemurError or ValueError if a package or weights are missing."""
    needs: Needs = _nothing
    """A function that says what a sample lacks for the detector, or None if it lacks nothing."""
    fits: Callable[[BaseChatModel], str | None] = _any_model
    """A function that says why a chat model cannot serve the detector, or None if it can."""
    asks: bool = True
    """Whether the detector needs a chat model."""
    on_request: bool = False
    """Whether the detector runs only if it is named, since it needs weights or a server of its
    own."""

    def unfit(self, judge: Judge) -> str | None:
        """Return why a judge cannot serve the detector, or None if it can."""
        if not self.asks:
            return None
        if not isinstance(judge, BaseChatModel):
            return f"it needs a chat model, and {str(judge)!r} is none"
        if is_served(judge) and self.fits is not _has_adapter:
            return "it needs a chat model, and a judge at an address is none"
        return self.fits(judge)

    @property
    def expensive(self) -> bool:
        """Return whether an answer may take more than `MOST_CHEAP` calls."""
        return self.calls is None or self.calls > MOST_CHEAP


def _without_model(evaluator: Callable[..., Evaluator], *values: Any) -> Callable[..., Evaluator]:
    return lambda model, **options: evaluator(*values, **options)


def _refcheckers(checker: str, calls: int | None) -> list[Detector]:
    """Return RefChecker's detectors with one checker, one for each kind of claim.

    Triplets take one call more, which writes them.
    """
    return [
        Detector(
            f"refchecker-{claims}-{checker}",
            f"RefChecker: {claims}, {_CHECKERS[checker]}",
            None if calls is None else calls + (claims != "sentences"),
            partial(RefChecker, claims=claims, checker=_NLI if checker == "nli" else checker),
            _sources,
            _FITS.get(checker, _any_model),
        )
        for claims in ("sentences", "triplets")
    ]


def _yes_no(name: str) -> Detector:
    """Return RefChecker with a yes-or-no judge: in this process, or served by the chat model."""
    here = NAMED[name].judge.weights is not None
    make = _without_model(RefChecker, name) if here else partial(RefChecker, checker=name)
    what = f"RefChecker: sentences, checked by {name}, a yes-or-no judge"
    calls = 0 if here else None
    return Detector(
        f"refchecker-{name}", what, calls, make, _sources, asks=not here, on_request=True
    )


def _cascade(model: BaseChatModel, **options: Any) -> Cascade:
    by = partial(RefChecker, model, claims="sentences")
    return Cascade([by(checker=_NLI), by(checker="joint")], **options)


def _fewl(which: str, what: str, calls: int) -> Detector:
    make = partial(FEWL, **CONFIGURATIONS[which])
    return Detector(f"fewl-{which}", f"FEWL: {what}", calls, make, _question)


_FITS = {"adapter": _has_adapter, "logprobs": _gives_logprobs}
_CHECKERS = {
    "joint": "checked in one call",
    "per_claim": "checked one by one",
    "adapter": "checked one by one by demur's adapter for the local model",
    "logprobs": "checked one by one by the labels' log-probabilities",
    "nli": "checked by a cross-encoder for NLI, without the model",
}


def _floor(measure: Any, what: str, needs: Needs = _nothing) -> Detector:
    make = _without_model(Floor, measure)
    return Detector(f"floor-{measure}", f"no detector: {what}", 0, make, needs, asks=False)


def _self_check(method: Any, what: str, calls: int | None = 5, **options: Any) -> Detector:
    make = partial(SharedSelfCheck, method=method, **options)
    return Detector(f"selfcheck-{method}", f"SelfCheck: {what}", calls, make, _samples)


_EVERY = (
    _floor("longest", "the longer, the better"),
    _floor("shortest", "the shorter, the better"),
    _floor("question", "the share of words that the question has", _question),
    _floor("contexts", "the share of words that the contexts have", _sources),
    Detector(
        "all-false", "no detector: rejects every answer", 0, _without_model(AllFalse), asks=False
    ),
    Detector(
        "refchecker-small",
        "RefChecker: sentences, checked by demur's small judge, without the model",
        0,
        _without_model(RefChecker, SMALL),
        _sources,
        asks=False,
    ),
    *_refcheckers("nli", 0),
    Detector("zero-shot", "ZeroShot: the model is asked outright", 1, ZeroShot),
    Detector(
        "answer-relevance",
        "AnswerRelevance: does the answer address the question?",
        1,
        AnswerRelevance,
        _question,
    ),
    Detector(
        "self-contradiction",
        "SelfContradiction: does the answer contradict itself?",
        1,
        SelfContradiction,
    ),
    *_refcheckers("joint", 1),
    Detector(
        "cascade-nli-joint",
        "Cascade: sentences, checked by NLI, and by the model where NLI is not sure",
        1,
        _cascade,
        _sources,
    ),
    Detector(
        "reverse-validation-qg",
        "ReverseValidation: a question that leads back to the entity",
        2,
        partial(ReverseValidation, variant="qg"),
        _entity,
    ),
    Detector(
        "reverse-validation-em",
        "ReverseValidation: requirements that the entity meets",
        2,
        partial(ReverseValidation, variant="em"),
        _entity,
    ),
    _fewl("single", "one answer of the model's own as the reference", 1),
    _fewl("multi", "five answers of the model's own as references, all alike", 1),
    Detector(
        "fewl", "FEWL: five answers of the model's own, weighted by expertise", 2, FEWL, _question
    ),
    *_refcheckers("adapter", None),
    *_refcheckers("logprobs", None),
    *_refcheckers("per_claim", None),
    _self_check("embedding", "by embeddings of five samples"),
    _self_check("ngram", "by n-grams of five samples"),
    _self_check("bertscore", "by BERTScore with five samples"),
    _self_check("nli", "by demur's small judge with five samples", nli=SMALL),
    _self_check("prompt", "by asking about each sentence and sample", None),
    Detector("lm-vs-lm", "LMvsLM: an examiner questions the model", None, LMvsLM),
    *map(_yes_no, NAMED),
)

DETECTORS: Mapping[str, Detector] = {detector.name: detector for detector in _EVERY}
"""All detectors by name, in the order in which they run: the cheap ones first, and last those that
run only if they are named."""
