"""Score an answer by questioning a model that has not seen it (LMvsLM)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import Field, JsonValue, PrivateAttr

from demur.evaluators.base import Evaluator
from demur.evaluators.baselines.parsing import parse_questions, parse_verdict, parse_yes_no
from demur.evaluators.baselines.prompts import LMvsLMPrompts
from demur.evaluators.verdicts import ask_until_read, evaluation, refuse_empty
from demur.local import resolve_model
from demur.runtime import CallPolicy, ChatCall, Steps, UndeterminedError, ask, bounded, fields_of
from demur.runtime.prompting import isolate, without_delimiters
from demur.schema import Evaluation, Sample
from demur.schema.fingerprints import model_fingerprint, prompts_fingerprint

_QUESTION_TOKENS, _ANSWER_TOKENS, _WORD_TOKENS = 256, 512, 64


class LMvsLM(Evaluator):
    """Have an examiner question an examinee about the answer, and then decide.

    The examiner reads the answer and asks questions. The examinee is shown only the questions of
    the present round, without the answer and without earlier questions. After each round the
    examiner is asked whether it has more questions, until it has none or `max_rounds` is reached.
    Then the examiner is asked for its verdict. It sees the whole conversation. A round costs two or
    three calls, one after another, and the conversation grows with each.

    `score` is 1.0 for "factual" and 0.0 for "non-factual"; `failure` is "other" for the latter.
    `details["dialogue"]` is the conversation in order: a list of `{"by", "said"}`, where "by" is
    "examiner" or "examinee". `details["rounds"]` is the number of rounds.

    The evaluation is undetermined if a call failed, a model's reply is empty, the verdict cannot be
    read twice, or the answer is empty. Its `details` have the dialogue so far.

    The method is of Cohen et al. 2023 (arXiv 2305.13281), as revised for passages in arXiv
    2310.06498, section 5.

    Args:
        model: The examiner: a chat model, or a name such as "openai:gpt-4o-mini" (see
            `resolve_model`).
        examinee: The model that is questioned, given like `model`. None: the same model.
        max_rounds: The most rounds in which the examinee is questioned, at least 1.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: The retries, time limits and concurrency of model calls. None: defaults that
            fit the model.

    Raises:
        ValueError: The name of a model has no known form, or `max_rounds` is less than 1.
        TypeError: A model is not a chat model.
        DemurError: A model is not available.
    """

    model: Any
    examinee: Any = None
    max_rounds: int = Field(default=4, ge=1)

    _examiner: BaseChatModel = PrivateAttr()
    _prompts: ClassVar[LMvsLMPrompts] = LMvsLMPrompts()
    _examinee: BaseChatModel = PrivateAttr()

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        examinee: str | BaseChatModel | None = None,
        max_rounds: int = 4,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        super().__init__(**fields_of(locals()))

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the names of models, so that a wrong name is reported before the first call."""
        super().model_post_init(context)
        self._examiner = resolve_model(self.model)
        named = self.model if self.examinee is None else self.examinee
        self._examinee = self._examiner if named is self.model else resolve_model(named)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return what the scores depend on: both models, the number of rounds, and the prompts."""
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(self._examiner),
            "examinee": model_fingerprint(self._examinee),
            "rounds": str(self.max_rounds),
            "prompts": prompts_fingerprint(self._prompts),
        }

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        refuse_empty(sample)
        dialogue: list[tuple[str, str]] = []
        try:
            factual = yield from self._decide(sample, dialogue)
        except UndeterminedError as error:
            error.details |= _details(dialogue)
            raise
        verdict = "nothing" if factual else "something"
        explanation = f"By what the examinee said, the examiner finds {verdict} wrong in it."
        return evaluation(self.get_name(), factual, explanation, _details(dialogue))

    def _decide(self, sample: Sample, dialogue: list[tuple[str, str]]) -> Steps[bool]:
        """Return the examiner's verdict, and add all replies to the dialogue."""
        talk = yield from self._examine(sample, dialogue)
        replies: list[str] = []
        try:
            return (
                yield from ask_until_read(
                    self._examiner,
                    talk,
                    "conclusion",
                    lambda reply: parse_verdict(reply, [sample.answer]),
                    "incorrect or correct",
                    _WORD_TOKENS,
                    replies,
                )
            )
        finally:
            dialogue += (("examiner", reply) for reply in replies)

    def _examine(self, sample: Sample, dialogue: list[tuple[str, str]]) -> Steps[list[BaseMessage]]:
        """Question the examinee, and add all replies to the dialogue.

        Returns:
            The examiner's side of the conversation, which ends with the request for a verdict.

        Raises:
            UndeterminedError: A call failed, or a model's reply is empty.
        """
        prompts, examiner = self._prompts, self._examiner
        talk = prompts.examine.messages(passage=sample.answer, question=sample.question)

        def say(
            model: BaseChatModel, messages: list[BaseMessage], stage: str, most: int
        ) -> Steps[str]:
            by = "examinee" if stage == "testimony" else "examiner"
            call = ChatCall(model, messages, stage, bounded(model, most))
            reply = yield from ask(call, f"the {by} gave no reply")
            text = without_delimiters(reply.text)
            dialogue.append((by, text))
            if not text:
                raise UndeterminedError(f"the {by}'s reply is empty")
            return text

        reply = yield from say(examiner, talk, "examination", _QUESTION_TOKENS)
        for left in reversed(range(self.max_rounds)):
            testify = prompts.testify.messages(inquiry=parse_questions(reply) or reply)
            answers = yield from say(self._examinee, testify, "testimony", _ANSWER_TOKENS)
            heard = f"The witness says:\n{isolate('testimony', answers)}"
            talk.append(AIMessage(reply))
            if not left:
                break
            talk.append(HumanMessage(f"{heard}\n\n{prompts.more}"))
            reply = yield from say(examiner, talk, "more", _QUESTION_TOKENS)
            asking = bool(parse_questions(reply))
            if not _go_on(reply, asking):
                talk.append(AIMessage(reply))
                return [*talk, HumanMessage(prompts.conclude)]
            if not asking:
                talk += [AIMessage(reply), HumanMessage(prompts.ask_on)]
                reply = yield from say(examiner, talk, "examination", _QUESTION_TOKENS)
        return [*talk, HumanMessage(f"{heard}\n\n{prompts.conclude}")]


def _go_on(reply: str, asking: bool) -> bool:
    """Return whether the examiner has more to ask; without a yes or a question, it has not."""
    more = parse_yes_no(reply)
    return asking if more is None else more


def _details(dialogue: Sequence[tuple[str, str]]) -> dict[str, JsonValue]:
    return {
        "dialogue": [{"by": by, "said": text} for by, text in dialogue],
        "rounds": sum(by == "examinee" for by, _ in dialogue),
    }
