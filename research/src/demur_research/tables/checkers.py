"""Run RefChecker's checkers on given claims, to measure the checking without the extraction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur import Cascade, Claim, ClaimLabel, Evaluation, RefChecker, Sample
from demur._text import words
from demur.evaluators import Evaluator
from demur.evaluators.base import ExtractedClaims
from demur.local import JUDGE_FILES, SMALL, find_judge
from demur.recording import CallLine, RecordedChat
from demur.runtime import Steps, is_local
from demur.schema import ABSTAIN
from demur.similarity import NAMED
from demur_research.bench import Bench

CHECKERS = ("logprobs", "joint", "per_claim")
"""The checkers of RefChecker that ask a chat model."""
ADAPTER = "adapter"
"""The checker that is demur's adapter for the local model."""
WHOLE = "answer"
"""The name of RefChecker as a whole, on an answer whose claims it finds itself."""


class GivenClaims(RefChecker):
    """Check given claims with RefChecker: `metadata["claims"]`, or else the answer as one claim."""

    def _find(self, sample: Sample) -> Steps[ExtractedClaims | Evaluation]:
        yield from ()
        claims = sample.metadata.get("claims") or [Claim(text=sample.answer)]
        return ExtractedClaims(sample, tuple(claims))

    @property
    def least(self) -> float | None:
        """Return the probability of Entailment from which a claim counts as supported.

        It is None if a claim gets its most likely label, or the checker gives no probabilities.
        """
        return self._least


class _Adapted(RecordedChat):
    """Judge by demur's adapter for the local model, whose hash the recorded calls have."""

    @property
    def adapter_fingerprint(self) -> str:
        """Return the sha256 of the adapter."""
        (file,) = (name for name in JUDGE_FILES if name.endswith(".gguf"))
        return find_judge(file).sha256

    @property
    def judging(self) -> dict[str, Any] | None:
        """Return the call options of a judgement, or None if the model has no adapter."""
        if self.inner is not None and getattr(self.inner, "judging", None) is None:
            return None
        return {ADAPTER: self.adapter_fingerprint}

    def _asked(self, key: str, messages: list[BaseMessage], options: dict[str, Any]) -> CallLine:
        if self.inner is None or ADAPTER not in options:
            return super()._asked(key, messages, options)
        asked = {name: value for name, value in options.items() if name != ADAPTER}
        line = super()._asked(key, messages, {**asked, **self.inner.judging})
        return line.model_copy(update={"options": options})


def adapted(model: BaseChatModel) -> BaseChatModel:
    """Return a recorded model with demur's adapter, if it is the local one."""
    if not (isinstance(model, RecordedChat) and is_local(model)):
        return model
    return _Adapted(recording=model.recording, told=model.told, inner=model.inner)


def judge(bench: Bench, name: str) -> Evaluator:
    """Return a judge: "small", "local", "cascade" of both, "model" (`--model`), or of `NAMED`."""
    if name in NAMED:
        return RefChecker(**yes_no(bench, name))
    match name:
        case "small":
            return RefChecker(SMALL)
        case "local":
            return RefChecker(adapted(bench.model_of("local")))
        case "cascade":
            return Cascade([judge(bench, "small"), judge(bench, "local")])
        case _:
            return RefChecker(adapted(bench.model))


def yes_no(bench: Bench, name: str) -> dict[str, Any]:
    """Return RefChecker's arguments for a yes-or-no judge, which the model may have to serve."""
    if NAMED[name].judge.weights is not None:
        return {"model": name}
    return {"model": bench.model, "checker": name}


def checker(name: str, model: BaseChatModel) -> Evaluator:
    """Return the evaluator of a name: one of `CHECKERS`, or `WHOLE`."""
    return RefChecker(model) if name == WHOLE else GivenClaims(model=model, checker=name)


def limits(shipped: float | None, others: Iterable[float]) -> dict[str, float]:
    """Return limits in their order, by the names of their rows.

    Args:
        shipped: The limit that RefChecker has, which its row says; None if it has no limit.
        others: The limits to compare with it.
    """
    every = {*others} if shipped is None else {*others, shipped}
    return {
        f"{least:.2f}{' (what RefChecker does)' if least == shipped else ''}": least
        for least in sorted(every)
    }


def sample(
    answer: str, contexts: Sequence[str], question: str | None = None, **metadata: object
) -> Sample:
    """Return the sample that an evaluator reads."""
    documents = tuple(Document(page_content=text) for text in contexts)
    return Sample(answer=answer, contexts=documents, question=question, metadata=metadata)


def score(found: Evaluation) -> float | None:
    """Return how well supported a claim or an answer is said to be, in [0, 1]; None: undetermined.

    This is the evaluation's score, but a single claim that is Neutral by a checker without
    probabilities has 0.5.
    """
    if found.undetermined or found.label == ABSTAIN:
        return None if found.undetermined else 1.0
    match found.claims:
        case [Claim(label=ClaimLabel.NEUTRAL, support=None)]:
            return 0.5
    return found.score


def share_of_words(text: str, *known: str) -> float:
    """Return the share of a text's words that stand in other texts, in [0, 1]; 0 without words."""
    held = {word for one in known for word, _, _ in words(one)}
    said = [word in held for word, _, _ in words(text)]
    return sum(said) / len(said) if said else 0.0


def passing(name: str, passed: bool) -> Evaluation:
    """Return the evaluation of a trivial evaluator, which says the same of every answer."""
    label = ClaimLabel.ENTAILMENT if passed else ClaimLabel.CONTRADICTION
    return Evaluation(name=name, score=float(passed), label=label.value, passed=passed)


FLOORS = {
    "everything passes": passing("everything passes", True),
    "nothing passes": passing("nothing passes", False),
}
"""The evaluations of the trivial evaluators, by name."""
