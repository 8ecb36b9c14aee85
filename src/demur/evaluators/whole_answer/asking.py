"""Ask a model one question about an answer as a whole, to be answered with one of two words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import PrivateAttr

from demur._text import one_line
from demur.evaluators.base import Evaluator
from demur.evaluators.refchecker.coverage import stating
from demur.evaluators.thresholds import ShareThreshold, number, refuse_foreign
from demur.evaluators.verdicts import ask_until_read, refuse_empty
from demur.evaluators.whole_answer.parsing import Words
from demur.evaluators.whole_answer.prompts import AnswerRelevancePrompts, SelfContradictionPrompts
from demur.local import resolve_model
from demur.runtime import ChatCall, Steps, UndeterminedError, ask, is_local, undetermined_with
from demur.runtime.prompting import word_share
from demur.schema import ABSTAIN, Claim, Evaluation, Failure, Sample
from demur.schema.fingerprints import model_fingerprint, prompts_fingerprint

_WORD_TOKENS = 32

By = Literal["auto", "words", "logprobs"]
"""How the model's word is read."""


@dataclass(frozen=True)
class Check:
    """Describe what an evaluator asks for, and what it makes of the reply."""

    stage: str
    words: Words
    tokens: int
    """The most tokens of a reply that is read by log-probabilities."""
    labels: Mapping[bool | None, str]
    """The labels, by whether the answer passed."""
    failure: Failure
    says: Mapping[bool | None, str]
    """The explanations, by whether the answer passed; they may use `score` and `quotes`."""


class WholeAnswerEvaluator(Evaluator):
    """Ask one question about an answer as a whole: the base of such evaluators.

    An answer that states nothing, such as "I don't know", gets the label "Abstain" without a call.
    """

    model: Any
    by: By = "auto"
    threshold: ShareThreshold | None

    _chat: BaseChatModel = PrivateAttr()
    _mode: Literal["words", "logprobs"] = PrivateAttr()
    _check: ClassVar[Check]
    _prompts: ClassVar[AnswerRelevancePrompts | SelfContradictionPrompts]

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the name of the model, so that a wrong name is reported before the first call."""
        super().model_post_init(context)
        self._chat = resolve_model(self.model)
        auto: Literal["words", "logprobs"] = "logprobs" if is_local(self._chat) else "words"
        self._mode = auto if self.by == "auto" else self.by
        refuse_foreign(self.threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on: the model, how its reply is read, and the prompts."""
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(self._chat),
            "by": self._mode,
            "prompts": prompts_fingerprint(self._prompts),
        }

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        refuse_empty(sample)
        if not stating(sample):
            return Evaluation(
                name=self.get_name(),
                label=ABSTAIN,
                explanation="The answer states nothing that could be judged.",
                details={"by": self._mode},
            )
        messages = self._messages(sample)
        replies: list[str] = []
        details: dict[str, Any] = {"by": self._mode, "replies": replies}
        with undetermined_with(details):
            score = yield from self._ask(messages, sample, replies)
        least = number(self.threshold)
        passed = None if least is None else score >= least
        wrong = passed is False
        parts = self._parts(replies[-1], sample.answer) if wrong else ()
        said = " and also ".join(f"\u201c{one_line(part.text)}\u201d" for part in parts)
        quotes = f": it says {said}" if said else ""
        return Evaluation(
            name=self.get_name(),
            score=score,
            label=self._check.labels.get(passed),
            passed=passed,
            failure=self._check.failure if wrong else None,
            explanation=self._check.says[passed].format(score=score, quotes=quotes),
            claims=parts,
            details=details,
        )

    def _ask(self, messages: list[BaseMessage], sample: Sample, replies: list[str]) -> Steps[float]:
        """Return the probability of the good word, in [0, 1]; by words it is 1 or 0."""
        check = self._check
        words = check.words
        if self._mode == "words":
            shown = [sample.answer, sample.question or ""]
            good = yield from ask_until_read(
                self._chat,
                messages,
                check.stage,
                lambda reply: words.read(reply, shown),
                f"{words.good} or {words.bad}",
                max(check.tokens, _WORD_TOKENS),
                replies,
            )
            return float(good)
        options = {"logprobs": True, "top_logprobs": 20, "max_tokens": check.tokens}
        reply = yield from ask(ChatCall(self._chat, messages, check.stage, options))
        replies.append(reply.text)
        if reply.reasoned:
            raise UndeterminedError(
                "the model reasons before it answers, so that the first token is no verdict: "
                "choose by='words'"
            )
        return word_share(reply.first_token, words.good, words.bad)

    @abstractmethod
    def _messages(self, sample: Sample) -> list[BaseMessage]:
        """Return the messages that ask the question.

        Raises:
            UndeterminedError: The sample lacks something that the question needs.
        """

    def _parts(self, reply: str, answer: str) -> tuple[Claim, ...]:
        """Return the parts of a failed answer that the reply names."""
        return ()
