"""The parts of an attempt: the chain's run, the answer that came of it, and the verdict on that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError

from demur.errors import DemurError
from demur.guard.capture import Capture
from demur.guard.feedback import Feedback
from demur.guard.inside import as_context, inside
from demur.guard.recovery import Final
from demur.guard.trace import Attempt, Limited, Origin, Verdict
from demur.guard.widening import Widening, while_widening
from demur.runtime import NO_STREAM, CallPolicy, Outcome, within_scope
from demur.schema import Evaluation, OnAbstain, Usage

_INTERRUPTED = (
    "a graph inside the guard was interrupted, and a guard keeps nothing from which it could be "
    "resumed: guard the agent from the inside with HallucinationMiddleware of langchain-demur, or "
    "interrupt in a node outside of the guard"
)


@dataclass(frozen=True)
class ChainCall:
    """One run of the guarded chain. Its outcome's value is what the chain returned.

    The one call that raises: a guard does not come between a chain and its caller's error handling.
    """

    chain: Runnable[Any, Any]
    input: Any
    kwargs: Mapping[str, Any]
    number: int
    """Which attempt it is, from 1."""
    widening: Widening
    """Knows what its retrievers are to search for, and whether there are any that would."""
    capture: Capture = field(default_factory=Capture)
    """Knows, when it is over, what the chain retrieved and spent."""
    stage: str = "chain"

    def at_once(self, policy: CallPolicy | None) -> int:
        """There is one at a time."""
        return 1

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[Any]:
        """Run the chain in this thread."""
        with self.running(config) as inner:
            return Outcome(self.chain.invoke(self.input, inner, **self.kwargs))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[Any]:
        """Run the chain in the running loop."""
        with self.running(config) as inner:
            return Outcome(await self.chain.ainvoke(self.input, inner, **self.kwargs))

    @contextmanager
    def running(self, config: RunnableConfig) -> Iterator[RunnableConfig]:
        """While the chain runs: its config, out of the guarded call's.

        Raises:
            DemurError: A graph inside the chain was interrupted.
        """
        inner = inside(config)
        manager = inner["callbacks"]
        assert isinstance(manager, BaseCallbackManager)  # a run's children have one
        manager.add_handler(self.capture)
        manager.add_tags([f"attempt:{self.number}"], inherit=False)
        # For handlers of a client's own that stream, which nothing but their use tells.
        inner["tags"] = [*inner.get("tags", []), NO_STREAM]
        self.capture.namespace = inner.get("configurable", {}).get("checkpoint_ns")
        # Its own calls are not reserved: what they spent is counted when it is over.
        with within_scope(None), while_widening(self.widening), as_context(inner):
            try:
                yield inner
            except Exception as error:
                if self.capture.is_interrupt_inside(error):
                    raise DemurError(_INTERRUPTED) from None
                raise


@dataclass(frozen=True)
class Answered:
    """An answer that is not judged yet."""

    output: Any
    """What the guard would return."""
    text: str
    contexts: tuple[Document, ...]
    origin: Origin
    usage: Usage
    abstained: bool = False
    """Whether it is the refusal of another guard inside the chain."""
    recovery: str | None = None
    feedback: Feedback | None = None


@dataclass(frozen=True)
class Tried:
    """An attempt, with what the trace does not hold."""

    attempt: Attempt
    output: Any
    same_as: int | None = None
    """The number of the earlier attempt that gave this very answer."""


@dataclass(frozen=True)
class Ended:
    """Why there is no further attempt."""

    reason: str
    final: Final | None = None
    """What the policy says about the failure; None for its end."""
    limit: Limited | None = None
    error: str | None = None
    """What a failed repair said. The reason has the kind of error alone, for anyone to see."""
    usage: Usage = field(default_factory=Usage)
    """What was spent on one that came to nothing."""


def as_verdict(name: str, outcome: Outcome[object]) -> Evaluation:
    """What an evaluator gave, which a guard can act on.

    Raises:
        DemurError: It gave something else, or no verdict for want of a threshold.
    """
    evaluation = as_evaluation(name, outcome)
    if evaluation.finding == "scored":
        raise DemurError(no_verdict(name))
    return evaluation


def as_evaluation(name: str, outcome: Outcome[object]) -> Evaluation:
    """What an evaluator gave, or an undetermined evaluation where it raised.

    Raises:
        DemurError: It gave something else.
    """
    if outcome.error is not None:
        why = f"it raised {outcome.error}"
        return Evaluation(name=name, error=why, explanation=why, cause=outcome.cause)
    judgement = outcome.value
    if not isinstance(judgement, Evaluation):
        raise DemurError(
            f"{name} returned a {type(judgement).__name__}, expected an Evaluation: an evaluator "
            "is a Runnable from Sample to Evaluation"
        )
    try:
        return Evaluation.model_validate(dict(judgement))  # a copy may hold anything: "false", NaN
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, wrong["loc"]))
        why = f"it gave an evaluation that is none: {where}: {wrong['msg']}"
        return Evaluation(name=name, error=why, explanation=why)


def no_verdict(name: str) -> str:
    """What is wrong with an evaluator that only scores."""
    return (
        f"{name} scores answers but decides nothing (`passed` is None), so a guard cannot act on "
        "it: give it a threshold"
    )


def accepts(evaluation: Evaluation, on_abstain: OnAbstain = "pass") -> bool:
    """Whether an evaluation lets an answer through: it passed, or there was nothing to check."""
    finding = evaluation.finding
    return finding == "passed" or (finding == "nothing_to_check" and on_abstain == "pass")


def verdict_of(
    evaluations: Sequence[Evaluation], on_abstain: OnAbstain = "pass", evaluators: int = 1
) -> Verdict:
    """The verdict on an answer. A failure weighs most, then what could not be decided.

    Args:
        evaluations: Of the answer, or of each of its sentences in turn.
        on_abstain: See `Guard`.
        evaluators: How many there are, with an evaluation each of the answer or of a sentence.
    """
    findings = [evaluation.finding for evaluation in evaluations]
    by_evaluator = (set(findings[at::evaluators]) for at in range(evaluators))
    silent = any(of_evaluator <= {"nothing_to_check"} for of_evaluator in by_evaluator)
    if "failed" in findings or (silent and on_abstain == "fail"):
        return "failed"
    order: tuple[Verdict, ...] = ("undetermined", "scored", "passed")
    return next((finding for finding in order if finding in findings), "nothing_to_check")


def feedback_on(attempt: Attempt, number: int = 1, instruction: str = "") -> Feedback:
    """Why an attempt was not let through."""
    # What failed though no evaluation rejects it has failed because it states nothing.
    rejected = any(evaluation.finding == "failed" for evaluation in attempt.evaluations)
    on_abstain: OnAbstain = "fail" if attempt.verdict == "failed" and not rejected else "pass"
    return Feedback(
        question=attempt.question,
        answer=attempt.answer,
        evaluations=tuple(
            evaluation for evaluation in attempt.evaluations if not accepts(evaluation, on_abstain)
        ),
        instruction=instruction,
        attempt=number,
    )


def best_of(tried: Sequence[Tried], on_abstain: OnAbstain) -> Tried:
    """The attempt to fall back on: the fewest evaluations against it, then the highest scores."""

    def merit(candidate: Tried) -> tuple[int, float]:
        evaluations = candidate.attempt.evaluations
        scores = [e.score for e in evaluations if e.score is not None]
        mean = sum(scores) / len(scores) if scores else float("-inf")
        return sum(accepts(e, on_abstain) for e in evaluations), mean

    return max(tried, key=merit)
