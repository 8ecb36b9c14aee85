"""Provide a scripted chat model, for tests of logic and faults. It says nothing about quality."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.context import register_configure_hook
from pydantic import Field, PrivateAttr

from demur import ClaimLabel
from demur.schema import NLI_LABELS

Script = Callable[[str, Sequence[BaseMessage]], "str | AIMessage"]
"""A function from the stage (see `stage_of`) and the messages to the reply."""


class ScriptedModel(BaseChatModel):
    """Reply as the script says. An exception that the script raises is raised by the model."""

    script: Script = Field(exclude=True)

    _requests: list[tuple[str, list[BaseMessage]]] = PrivateAttr(default_factory=list)

    @property
    def stages(self) -> list[str]:
        """Return the stage of each request, in the order in which the requests came."""
        return [stage for stage, _ in self._requests]

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """Return the messages of each request."""
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


class _Stages(BaseCallbackHandler):
    """Hear every request in this process, and keep the run name for the texts of each request."""

    run_inline = True  # It must run before the model, not beside it.
    most = 5_000
    """The number of requests to remember, far more than are ever in flight at a time."""

    def __init__(self) -> None:
        self.of: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        for asked in map(_asked, messages):
            if name is None:  # The model is behind a recording, whose own run had the name.
                self.of.setdefault(asked, "chain")
            else:
                self.of[asked] = name
            self.of.move_to_end(asked)  # A text that is asked again is in flight again.
        if len(self.of) > self.most:  # There is no lock, because a fork might find it held.
            for asked in [*self.of][: self.most // 2]:
                self.of.pop(asked, None)


_STAGES = _Stages()
register_configure_hook(ContextVar("stages", default=_STAGES), inheritable=True)


def stage_of(messages: Sequence[BaseMessage]) -> str:
    """Return the stage of a request, also behind HTTP: its run name, or "chain" without a run name.

    A checking request is "joint" if it shows several claims, else "claim".
    """
    return _stage(_asked(messages))


def stage_of_prompt(prompt: str) -> str:
    """Return the stage of a request to a model that takes all messages as one text."""
    shown = [asked for asked in [*_STAGES.of] if all(one in prompt for one in asked)]
    return _stage(max(shown, key=lambda asked: len("".join(asked)), default=()))


def _stage(asked: tuple[str, ...]) -> str:
    stage = _STAGES.of.get(asked, "chain")
    if stage == "checking":
        return "joint" if "<claims-" in asked[-1] else "claim"
    return stage


def _asked(messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    return tuple(str(message.content) for message in messages if message.type == "human")


def isolated(tag: str, messages: Sequence[BaseMessage]) -> str:
    """Return the text between the last delimiters of a tag."""
    text = "\n".join(_asked(messages))
    return re.findall(rf"<({tag}-\w+)>\n(.*?)\n</\1>", text, re.DOTALL)[-1][1]


def labelled(messages: Sequence[BaseMessage], label: Callable[[str], object]) -> str:
    """Return a label for each numbered claim of a request, as the stage "joint" asks for them."""
    lines = (line.partition(". ") for line in isolated("claims", messages).splitlines())
    return "\n".join(f"{number}. {label(claim)}" for number, _, claim in lines)


def weighing(text: str, logprobs: Mapping[str, float]) -> AIMessage:
    """Return a reply with the log-probabilities of what its first token may be."""
    top = [{"token": token, "logprob": value} for token, value in logprobs.items()]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    return AIMessage(text, response_metadata=metadata)


def deciding(label: ClaimLabel) -> AIMessage:
    """Return a reply that is sure of a label."""
    tokens = {str(one): -0.1 if one is label else -5.0 for one in NLI_LABELS}
    return weighing(str(label), tokens)


def scripted(extraction: str, **labels: str) -> ScriptedModel:
    """Return a model that gives one extraction, and a fixed reply for each stage of checking."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return extraction if stage == "extraction" else labels[stage]

    return ScriptedModel(script=script)


def saying(reply: str) -> ScriptedModel:
    """Return a model that gives the same reply to every request."""
    return ScriptedModel(script=lambda stage, messages: reply)
