"""SelfContradiction: does one part of the answer rule out another?"""

from __future__ import annotations

from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur._frozen import fields_of
from demur.evaluators.thresholds import ShareThreshold, ThresholdOrFile
from demur.evaluators.whole_answer.asking import By, Check, WholeAnswerEvaluator
from demur.evaluators.whole_answer.parsing import Words, parse_quotes
from demur.evaluators.whole_answer.prompts import SelfContradictionPrompts
from demur.runtime import CallPolicy
from demur.schema import Claim, ClaimLabel, Failure, Sample

_PROMPTS = SelfContradictionPrompts()
_THRESHOLD = 0.7


class SelfContradiction(WholeAnswerEvaluator):
    """Ask a model, in one call, whether one part of the answer rules out another.

    Nothing but the answer is read, with its question for understanding it: what it says may be
    wrong, as long as all of it can be true together. A single sentence can contradict itself too
    ("Yes, you can, because it is forbidden").

    The evaluation's `score` is the probability that all of it can be true together, in [0, 1]; by
    words it is 1 or 0. Its `label` is "consistent" or "self-contradictory", and `failure` is
    "self_contradiction" for the latter. The two parts that the model quotes are `claims` with the
    label Contradiction, which here means that the other one contradicts it. They are there only if
    both stand in the answer; a wrong quote changes no verdict.

    An answer that states nothing ("I don't know") is labelled "Abstain" without a call. It is
    undetermined (`error` says why) when the answer is empty, the call failed, or the reply cannot
    be read. By words, an unreadable reply is asked for once more.

    The local model is too small for it: it misses half of the contradictions. Give it a larger one.

    The self-contradiction of FEWL (v1, appendix A; v2, appendix B); the check itself is ours.

    Args:
        model: A chat model, or a name for `resolve_model`.
        by: How the model's word is read, as `AnswerRelevance` has it.
        threshold: Answers that score less fail, as with `AnswerRelevance`. None: nothing is
            decided. The default is chosen for the local model.
        prompts: Other prompts in place of ours.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError, TypeError, DemurError: As `AnswerRelevance` raises them.
    """

    threshold: ShareThreshold | None = _THRESHOLD
    prompts: SelfContradictionPrompts = _PROMPTS

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
        prompts: SelfContradictionPrompts = _PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """See the class."""
        super().__init__(**fields_of(locals()))

    def _messages(self, sample: Sample) -> list[BaseMessage]:
        return self.prompts.consistency.messages(question=sample.question, answer=sample.answer)

    def _parts(self, reply: str, answer: str) -> tuple[Claim, ...]:
        return tuple(
            Claim(text=answer[span.start : span.end], span=span, label=ClaimLabel.CONTRADICTION)
            for span in parse_quotes(reply, answer) or ()
        )
