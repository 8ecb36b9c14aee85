"""PairwiseJudge: which of two answers is better, asked in both orders.

Version 1, appendix D.6 (version 2, D.12). The same judge compares two prompts, two sets of
exemplars or two models: the answers are all that it sees of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, ConfigDict, PrivateAttr, field_validator, model_validator

from demur._frozen import fields_of
from demur._resolve import resolve_model
from demur.exemplars.choices import Choice, parse_choice
from demur.exemplars.prompts import JUDGE
from demur.prompting import Prompt, as_shown
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
)
from demur.schema import Text, Usage

Reason = Literal["consistent", "inconsistent", "unsure", "same", "undetermined"]

_REPLY_TOKENS = 16


class Comparison(BaseModel):
    """Two answers to a question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Text
    """What was asked; not empty."""
    first: Text
    """An answer to it."""
    second: Text
    """Another one."""

    @field_validator("question")
    @classmethod
    def _is_asked(cls, question: str) -> str:
        if _is_empty(question):
            raise ValueError("expected the question that both answers are to, got an empty text")
        return question


class PairwiseVerdict(BaseModel):
    """What a judge says of two answers, asked in both orders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    winner: Literal["first", "second"] | None
    """The better answer; None unless the reason is "consistent"."""
    reason: Reason
    """"consistent": both orders have the same winner. "inconsistent": each has another one.
    "unsure": the judge was not sure in at least one order. "same": the answers are the same, and
    nothing was asked. "undetermined": a call failed, a reply cannot be read, or an answer is empty.
    """
    choices: tuple[Choice | None, Choice | None] = (None, None)
    """The two replies as read: with `first` shown as A, then with `second` shown as A."""
    usage: Usage = Usage()
    """What it cost."""
    error: Text | None = None
    """Why it is undetermined; None if it is not."""

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

    The two calls are made side by side. A winner is the answer that is better in both orders; a
    verdict of any other reason has none. Answers that differ in nothing that a model is shown, but
    for spacing, are "same" and cost no call. An answer that is empty is undetermined without a
    call, since the model would see only the other one.

    The judge of FEWL's win rates: version 1, appendix D.6; version 2, D.12.

    Args:
        model: A chat model, or a name for `resolve_model`.
        prompt: In place of ours; fields question, a, b. To be answered with A, B or C.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError: The model's name has no known form, or the prompt has other fields.
        TypeError: It is no chat model.
        DemurError: The model is not at hand.
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
        """See the class."""
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
        """Find the model, so that a mistake shows now and not in a call."""
        super().model_post_init(context)
        self._chat = resolve_model(self.model)

    def _accounted(self, output: PairwiseVerdict, costs: Costs) -> PairwiseVerdict:
        return output.model_copy(update={"usage": costs.total})

    def _work(self, input: Comparison | Mapping[str, Any]) -> Steps[PairwiseVerdict]:
        pair = input if isinstance(input, Comparison) else Comparison.model_validate(input)
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
    """Whether a judge would see nothing of it."""
    return not as_shown(text).strip()


def _verdict(outcomes: Sequence[Outcome[Reply]], shown: Sequence[str]) -> PairwiseVerdict:
    """What two outcomes say: undetermined before unsure, and that before inconsistent."""
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
