"""Check whether one part of an answer rules out another."""

from __future__ import annotations

from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur.evaluators.thresholds import ShareThreshold, ThresholdOrFile
from demur.evaluators.whole_answer.asking import By, Check, WholeAnswerEvaluator
from demur.evaluators.whole_answer.parsing import Words, parse_quotes
from demur.evaluators.whole_answer.prompts import SelfContradictionPrompts
from demur.runtime import CallPolicy, fields_of
from demur.schema import Claim, ClaimLabel, Failure, Sample

_THRESHOLD = 0.7


class SelfContradiction(WholeAnswerEvaluator):
    """Ask a model, in one call, whether one part of the answer rules out another.

    The model reads only the answer, and the question in order to understand the answer. The answer
    may be wrong, as long as all of it can be true together. A single sentence can contradict itself
    too ("Yes, you can, because it is forbidden").

    The evaluation's `score` is the probability that all of the answer can be true together, in [0,
    1]; by words it is 1 or 0. Its `label` is "consistent" or "self-contradictory", and `failure` is
    "self_contradiction" if the answer fails. The two parts that the model quotes are the `claims`.
    Their label is Contradiction, which here means that each contradicts the other. The evaluation
    has these claims only if both quotes stand in the answer; a wrong quote does not change the
    verdict.

    An answer that states nothing ("I don't know") gets the label "Abstain" without a call. The
    evaluation is undetermined (`error` says why) if the answer is empty, the call failed, or the
    reply cannot be read. By words, the model is asked once more after an unreadable reply.

    The local model is too small for this check: it misses half of the contradictions. Use a larger
    model.

    FEWL describes self-contradiction (v1, appendix A; v2, appendix B); the check itself is demur's
    own.

    Args:
        model: A chat model, or a name such as "openai:gpt-4o-mini" (see `resolve_model`).
        by: How the model's reply is read, as for `AnswerRelevance`.
        threshold: The lowest score with which an answer passes, in [0, 1]. Give a number, a
            `Threshold` that was chosen from scores with the same `fingerprints`, or the file that
            it was saved in. None: nothing is decided. The default was chosen for the local model.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of model calls. None: defaults that
            fit the model.

    Raises:
        ValueError: An argument is out of its range, the name of the model has no known form, or a
            `Threshold` was chosen from other scores.
        TypeError: `model` is not a chat model.
        DemurError: The model is not available.
    """

    threshold: ShareThreshold | None = _THRESHOLD

    _prompts: ClassVar[SelfContradictionPrompts] = SelfContradictionPrompts()
    _check: ClassVar[Check] = Check(
        "self_contradiction",
        Words("consistent", "contradictory"),
        tokens=200,
        labels={True: "consistent", False: "self-contradictory"},
        failure=Failure.SELF_CONTRADICTION,
        says={
            True: "All that the answer says can be true together.",
            False: "The answer contradicts itself{quotes}.",
            None: "All of it can be true together with a probability of {score:.2f}.",
        },
    )

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        by: By = "auto",
        threshold: ThresholdOrFile | None = _THRESHOLD,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    def _messages(self, sample: Sample) -> list[BaseMessage]:
        return self._prompts.consistency.messages(question=sample.question, answer=sample.answer)

    def _parts(self, reply: str, answer: str) -> tuple[Claim, ...]:
        return tuple(
            Claim(text=answer[span.start : span.end], span=span, label=ClaimLabel.CONTRADICTION)
            for span in parse_quotes(reply, answer) or ()
        )
