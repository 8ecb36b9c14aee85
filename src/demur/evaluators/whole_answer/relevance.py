"""AnswerRelevance: does the answer address the question?"""

from __future__ import annotations

from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur._frozen import fields_of
from demur._undetermined import UndeterminedError
from demur.evaluators.thresholds import ShareThreshold, ThresholdOrFile
from demur.evaluators.whole_answer.asking import By, Check, WholeAnswerEvaluator
from demur.evaluators.whole_answer.parsing import Words
from demur.evaluators.whole_answer.prompts import AnswerRelevancePrompts
from demur.runtime import CallPolicy
from demur.schema import Failure, Sample

_PROMPTS = AnswerRelevancePrompts()
_THRESHOLD = 0.8


class AnswerRelevance(WholeAnswerEvaluator):
    """Ask a model, in one call, whether the answer addresses the question, be it right or wrong.

    The evaluation's `score` is the probability that it does, in [0, 1]; by words it is 1 or 0. Its
    `label` is "relevant" or "irrelevant", and `failure` is "irrelevant" for the latter. An answer
    that states nothing ("I don't know", "The sources do not say", a greeting) is neither: its
    label is "Abstain", without a call, as RefChecker has it. One that says in other words that the
    answer is not known addresses the question.

    It is undetermined (`error` says why) when the sample has no question, the answer is empty, the
    call failed, or the reply cannot be read. By words, an unreadable reply is asked for once more.

    The irrelevant response of FEWL (v1, appendix A; v2, appendix B); the check itself is ours.

    Args:
        model: A chat model, or a name for `resolve_model`.
        by: "words": the model's yes or no is read. "logprobs": the log-probabilities of both are,
            which makes small local models usable. "auto": "logprobs" for the local model, else
            "words".
        threshold: Answers that score less fail, in [0, 1]: a number, or a `Threshold` that was
            chosen from scores of the same `fingerprints`, or the file that one was saved in. None:
            nothing is decided. The default is chosen for the local model.
        prompts: Other prompts in place of ours.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError: An argument is out of its range, the model's name has no known form, or a
            `Threshold` was chosen from other scores.
        TypeError: It is no chat model.
        DemurError: The model is not at hand.
    """

    threshold: ShareThreshold | None = _THRESHOLD
    prompts: AnswerRelevancePrompts = _PROMPTS

    _check: ClassVar[Check] = Check(
        "relevance",
        Words("yes", "no"),
        tokens=1,
        labels={True: "relevant", False: "irrelevant"},
        failure=Failure.IRRELEVANT,
        says={
            True: "The answer addresses the question.",
            False: "The answer does not address the question.",
            None: "It addresses the question with a probability of {score:.2f}.",
        },
    )

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        by: By = "auto",
        threshold: ThresholdOrFile | None = _THRESHOLD,
        prompts: AnswerRelevancePrompts = _PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """See the class."""
        super().__init__(**fields_of(locals()))

    def _messages(self, sample: Sample) -> list[BaseMessage]:
        if not (sample.question or "").strip():
            raise UndeterminedError(
                "there is no question that the answer could address: give the sample a question",
                cause="no question",
            )
        return self.prompts.relevance.messages(question=sample.question, answer=sample.answer)
