"""A chat model that does what a test tells it to, for logic and faults; it proves no quality."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, PrivateAttr

from demur.evaluators import (
    LMvsLMPrompts,
    ReverseValidationPrompts,
    SelfCheckPrompts,
    ZeroShotPrompts,
)
from demur.exemplars import PairwiseJudge

Script = Callable[[str, Sequence[BaseMessage]], "str | AIMessage"]
"""From the stage (see `stage_of`) and the messages to the reply."""


class ScriptedModel(BaseChatModel):
    """Replies as its script says; an exception that the script raises is the model's."""

    script: Script = Field(exclude=True)

    _requests: list[tuple[str, list[BaseMessage]]] = PrivateAttr(default_factory=list)

    @property
    def stages(self) -> list[str]:
        """What each request was for, in the order they came."""
        return [stage for stage, _ in self._requests]

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """The messages of each request."""
        return [messages for _, messages in self._requests]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        stage = stage_of(messages)
        self._requests.append((stage, messages))
        reply = self.script(stage, messages)
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])


_STAGES = {
    "statements": "agreement",
    "problems": "repair",
    "answer": "extraction",
    "claims": "joint",
    "claim": "claim",
    "question": "reference",
}
"""By the first of these tags that stands around something."""

_REVERSE = ReverseValidationPrompts()
_EXAMINATION = LMvsLMPrompts()
_CLOSINGS = {
    _REVERSE.question.closing: "construction",
    _REVERSE.entity_and_question.closing: "construction",
    _REVERSE.requirements.closing: "construction",
    _REVERSE.entity_and_requirements.closing: "construction",
    _REVERSE.answer.closing: "access",
    _REVERSE.find.closing: "access",
    _REVERSE.same.closing: "matching",
    ZeroShotPrompts().judge.closing: "verdict",
    _EXAMINATION.examine.closing: "examination",
    _EXAMINATION.testify.closing: "testimony",
    _EXAMINATION.more: "more",
    _EXAMINATION.ask_on: "examination",
    _EXAMINATION.conclude: "conclusion",
    SelfCheckPrompts().support.closing: "support",
    PairwiseJudge.model_fields["prompt"].default.closing: "comparison",
}
"""By the last line, where the tags are those of other stages too."""


def stage_of(messages: Sequence[BaseMessage]) -> str:
    """What a request is for, by the tags around what it judges; without tags, it is the chain's."""
    text = "\n".join(str(message.content) for message in messages if message.type == "human")
    # "findings" and "sources" are quoted to whoever answers again.
    tags = set(re.findall(r"<([a-z]+)-\w+>", text)) - {"findings", "sources"}
    if not tags:
        return "chain"
    closing = next((line for line in reversed(text.splitlines()) if line in _CLOSINGS), None)
    if closing is not None:
        return _CLOSINGS[closing]
    found = next((stage for tag, stage in _STAGES.items() if tag in tags), None)
    assert found is not None, f"no stage can be told from {text!r}"
    # FEWL shows its question alone, and asks for one thing or the other in the last line.
    return "pairs" if found == "reference" and "wrong" in text.splitlines()[-1] else found


def isolated(tag: str, messages: Sequence[BaseMessage]) -> str:
    """The text that stands between the last delimiters of a tag."""
    text = "\n".join(str(message.content) for message in messages if message.type == "human")
    return re.findall(rf"<({tag}-\w+)>\n(.*?)\n</\1>", text, re.DOTALL)[-1][1]


def scripted(extraction: str, **labels: str) -> ScriptedModel:
    """A model that gives one extraction, and one reply to every check."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return extraction if stage == "extraction" else labels[stage]

    return ScriptedModel(script=script)
