"""Check whether an answer addresses the question."""

from __future__ import annotations

from typing import ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from demur.evaluators.thresholds import ShareThreshold, ThresholdOrFile
from demur.evaluators.whole_answer.asking import By, Check, WholeAnswerEvaluator
from demur.evaluators.whole_answer.parsing import Words
from demur.evaluators.whole_answer.prompts import AnswerRelevancePrompts
from demur.runtime import CallPolicy, UndeterminedError, fields_of
from demur.schema import Failure, Sample

_THRESHOLD = 0.8


class AnswerRelevance(WholeAnswerEvaluator):
    """Ask a model, in one call, whether the answer addresses the question, be it right or wrong.

    The evaluation's `score` is the probability that the answer addresses the question, in [0, 1];
    by words it is 1 or 0. Its `label` is "relevant" or "irrelevant", and `failure` is "irrelevant"
    if the answer fails. An answer that states nothing ("I don't know", "The sources do not say", a
    greeting) gets the label "Abstain" without a call, as with `RefChecker`. An answer that says in
    other words that this is not known addresses the question.

    The evaluation is undetermined (`error` says why) if the sample has no question, the answer is
    empty, the call failed, or the reply cannot be read. By words, the model is asked once more
    after an unreadable reply.

    FEWL describes irrelevant answers (v1, appendix A; v2, appendix B); the check itself is demur's
    own.

    Args:
        model: A chat model, or a name such as "openai:gpt-4o-mini" (see `resolve_model`).
        by: How the model's reply is read. "words": the word yes or no is read. "logprobs": the
            log-probabilities of both words are read, which makes small local models usable. "auto":
            "logprobs" for the local model, else "words".
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

    _prompts: ClassVar[AnswerRelevancePrompts] = AnswerRelevancePrompts()
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
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    def _messages(self, sample: Sample) -> list[BaseMessage]:
        if not (sample.question or "").strip():
            raise UndeterminedError(
                "there is no question that the answer could address: give the sample a question",
                cause="no question",
            )
        return self._prompts.relevance.messages(question=sample.question, answer=sample.answer)
