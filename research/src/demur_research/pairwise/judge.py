"""Ask a model which of two answers is better, in both orders.

The method is that of FEWL, version 1, appendix D.6 (version 2, D.12). The same judge compares two
prompts, two sets of exemplars or two models, since it sees only the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, ConfigDict, PrivateAttr, field_validator, model_validator

from demur.local import resolve_model
from demur.runtime import (
    CallPolicy,
    ChatCall,
    Costs,
    Outcome,
    Reply,
    Steps,
    Stepwise,
    ask_all,
    bounded,
    fields_of,
)
from demur.runtime.prompting import Prompt, as_shown
from demur.schema import Text, Usage, validated
from demur_research.pairwise.choices import Choice, parse_choice
from demur_research.pairwise.prompts import JUDGE

Reason = Literal["consistent", "inconsistent", "unsure", "same", "undetermined"]

_REPLY_TOKENS = 16


_EXPECTED = "a Comparison, or a mapping such as {'question': ..., 'first': ..., 'second': ...}"


class Comparison(BaseModel):
    """Hold two answers to a question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Text
    """The question, not empty."""
    first: Text
    """An answer to the question."""
    second: Text
    """Another answer to the question."""

    @field_validator("question")
    @classmethod
    def _is_asked(cls, question: str) -> str:
        if _is_empty(question):
            raise ValueError("expected the question that both answers are to, got an empty text")
        return question


class PairwiseVerdict(BaseModel):
    """Describe what a judge says of two answers, asked in both orders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    winner: Literal["first", "second"] | None
    """The better answer; None unless the reason is "consistent"."""
    reason: Reason
    """The reason for the verdict. "consistent": both orders have the same winner. "inconsistent":
    each order has another winner. "unsure": the judge was not sure in at least one order. "same":
    the answers are the same, and no model was asked. "undetermined": a call failed, a reply cannot
    be read, or an answer is empty."""
    choices: tuple[Choice | None, Choice | None] = (None, None)
    """The choices in the two replies: with `first` shown as A, then with `second` shown as A."""
    usage: Usage = Usage()
    """The usage of the calls."""
    error: Text | None = None
    """Why the verdict is undetermined; None if it is not."""

    @model_validator(mode="after")
    def _is_sound(self) -> PairwiseVerdict:
        if (self.winner is not None) is not (self.reason == "consistent"):
            raise ValueError(
                f"expected a winner exactly where the reason is 'consistent', got {self.winner!r} "
                f"with {self.reason!r}"
            )
        if (self.error is not None) is not (self.reason == "undetermined"):
            raise ValueError(
                f"expected an error exactly where the reason is 'undetermined', got {self.error!r} "
                f"with {self.reason!r}"
            )
        return self


class PairwiseJudge(Stepwise[Comparison | Mapping[str, Any], PairwiseVerdict]):
    """Ask a model which of two answers is better, once in each order.

    The two calls are made at the same time. An answer wins if it is better in both orders; any
    other verdict has no winner. Answers that look the same to a model, apart from spacing, are
    "same" and cost no call. If an answer is empty, the verdict is undetermined without a call,
    since the model would see only the other answer.

    This is the judge of FEWL's win rates: version 1, appendix D.6; version 2, D.12.

    Args:
        model: A chat model, or a name for `resolve_model`.
        prompt: A prompt that replaces demur's own, with the fields question, a and b. It must ask
            for A, B or C.
        name: The name in traces. None: the name of the class.
        call_policy: Retries, time limits and concurrency of the calls. None: the defaults for the
            model.

    Raises:
        ValueError: The model's name has no known form, or the prompt has other fields.
        TypeError: `model` is not a chat model.
        DemurError: The model is not available.
    """

    model: Any
    prompt: Prompt = JUDGE

    _chat: BaseChatModel = PrivateAttr()

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        prompt: Prompt = JUDGE,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make a judge; the class describes the arguments."""
        super().__init__(**fields_of(locals()))

    @field_validator("prompt")
    @classmethod
    def _shows_all(cls, prompt: Prompt) -> Prompt:
        if sorted(prompt.fields) != sorted(JUDGE.fields):
            raise ValueError(
                f"expected the fields {', '.join(JUDGE.fields)}, got {', '.join(prompt.fields)}"
            )
        return prompt

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the model, so that a mistake shows before the first call."""
        super().model_post_init(context)
        self._chat = resolve_model(self.model)

    def _accounted(self, output: PairwiseVerdict, costs: Costs) -> PairwiseVerdict:
        return output.model_copy(update={"usage": costs.total})

    def _work(self, input: Comparison | Mapping[str, Any]) -> Steps[PairwiseVerdict]:
        pair = validated(Comparison, input, _EXPECTED)
        empty = [name for name in ("first", "second") if _is_empty(getattr(pair, name))]
        if empty:
            error = f"nothing to compare: the {' and the '.join(empty)} answer is empty"
            return PairwiseVerdict(winner=None, reason="undetermined", error=error)
        if as_shown(pair.first).split() == as_shown(pair.second).split():
            return PairwiseVerdict(winner=None, reason="same")
        orders = ((pair.first, pair.second), (pair.second, pair.first))
        prompts = [self.prompt.messages(question=pair.question, a=a, b=b) for a, b in orders]
        options = bounded(self._chat, _REPLY_TOKENS)
        outcomes = yield from ask_all(
            [ChatCall(self._chat, messages, "comparison", options) for messages in prompts]
        )
        return _verdict(outcomes, (pair.question, pair.first, pair.second))


def _is_empty(text: str) -> bool:
    """Return whether a judge would see nothing of the text."""
    return not as_shown(text).strip()


def _verdict(outcomes: Sequence[Outcome[Reply]], shown: Sequence[str]) -> PairwiseVerdict:
    """Return the verdict of the two outcomes.

    Undetermined takes precedence over unsure, and unsure over inconsistent.
    """
    there, back = (
        None if outcome.error is not None else parse_choice(outcome.value.text, shown)
        for outcome in outcomes
    )
    choices = (there, back)
    if there is None or back is None:
        errors = [
            f"with the {name} answer shown as A, {problem}"
            for name, outcome, choice in zip(("first", "second"), outcomes, choices, strict=True)
            if (problem := _problem(outcome, choice)) is not None
        ]
        return PairwiseVerdict(
            winner=None, reason="undetermined", choices=choices, error="; ".join(errors)
        )
    if "C" in choices:
        return PairwiseVerdict(winner=None, reason="unsure", choices=choices)
    if there == back:
        return PairwiseVerdict(winner=None, reason="inconsistent", choices=choices)
    winner: Literal["first", "second"] = "first" if there == "A" else "second"
    return PairwiseVerdict(winner=winner, reason="consistent", choices=choices)


def _problem(outcome: Outcome[Reply], choice: Choice | None) -> str | None:
    if outcome.error is not None:
        return outcome.error
    if choice is None:
        return f"the reply is none of A, B and C: {outcome.value.text!r}"
    return None
