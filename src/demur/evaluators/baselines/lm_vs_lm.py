"""LMvsLM: an examiner questions an examinee who has not seen the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import Field, JsonValue, PrivateAttr

from demur._fingerprints import model_fingerprint, prompts_fingerprint
from demur._frozen import fields_of
from demur._resolve import resolve_model
from demur._undetermined import UndeterminedError
from demur.evaluators.base import Evaluator
from demur.evaluators.baselines.parsing import parse_questions, parse_verdict, parse_yes_no
from demur.evaluators.baselines.prompts import LMvsLMPrompts
from demur.evaluators.baselines.verdicts import ask_until_read, evaluation, refuse_empty
from demur.prompting import isolate, without_delimiters
from demur.runtime import CallPolicy, ChatCall, Steps, ask, bounded
from demur.schema import Evaluation, Sample

_QUESTION_TOKENS, _ANSWER_TOKENS, _WORD_TOKENS = 256, 512, 64

_PROMPTS = LMvsLMPrompts()


class LMvsLM(Evaluator):
    """Have an examiner question an examinee about the answer, and then decide.

    The examiner reads the answer and asks; the examinee is shown the questions alone, without the
    answer and without what was asked before; the examiner is asked whether it has more to ask,
    until it has not or `max_rounds` is reached, and then for its verdict. It sees all that was
    said. A round costs two or three calls, one after another, in a conversation that grows.

    `score` is 1.0 for "factual" and 0.0 for "non-factual"; `failure` is "other" for the latter.
    `details["dialogue"]` is all that was said, in order: a list of `{"by", "said"}`, by "examiner"
    or "examinee"; `details["rounds"]` counts the rounds. Undetermined, with the dialogue so far: a
    call failed, a model says nothing, the verdict cannot be read twice, or the answer is empty.

    Cohen et al. 2023 (arXiv 2305.13281), as arXiv 2310.06498, section 5, revises it for passages.

    Args:
        model: The examiner: a chat model, or a name for `resolve_model`.
        examinee: Who is questioned. None: the same model.
        max_rounds: How often the examinee is asked at most.
        prompts: Other prompts in place of ours.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError: A model's name has no known form, or `max_rounds` is less than 1.
        TypeError: A model is no chat model.
        DemurError: A model is not at hand.
    """

    model: Any
    examinee: Any = None
    max_rounds: int = Field(default=4, ge=1)
    prompts: LMvsLMPrompts = _PROMPTS

    _examiner: BaseChatModel = PrivateAttr()
    _examinee: BaseChatModel = PrivateAttr()

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        examinee: str | BaseChatModel | None = None,
        max_rounds: int = 4,
        prompts: LMvsLMPrompts = _PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """See the class."""
        super().__init__(**fields_of(locals()))

    def model_post_init(self, context: Any, /) -> None:
        """Find the models, so that a mistake shows now and not in a call."""
        super().model_post_init(context)
        self._examiner = resolve_model(self.model)
        named = self.model if self.examinee is None else self.examinee
        self._examinee = self._examiner if named is self.model else resolve_model(named)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What its scores depend on, in texts: both models, the rounds and the prompts."""
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(self._examiner),
            "examinee": model_fingerprint(self._examinee),
            "rounds": str(self.max_rounds),
            "prompts": prompts_fingerprint(self.prompts),
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
        """The examiner's verdict; what is said is written down."""
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
        """Question the examinee, and write down what is said.

        Returns:
            The examiner's side of it, which ends by asking for the verdict.

        Raises:
            UndeterminedError: A call failed, or a model said nothing.
        """
        prompts, examiner = self.prompts, self._examiner
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
                raise UndeterminedError(f"the {by} says nothing")
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
    """Whether the examiner has more to ask; what is neither a yes nor a question ends it."""
    more = parse_yes_no(reply)
    return asking if more is None else more


def _details(dialogue: Sequence[tuple[str, str]]) -> dict[str, JsonValue]:
    return {
        "dialogue": [{"by": by, "said": text} for by, text in dialogue],
        "rounds": sum(by == "examinee" for by, _ in dialogue),
    }
