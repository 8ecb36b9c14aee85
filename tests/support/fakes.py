"""A chat model that does what a test tells it to, for logic and faults; it proves no quality."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, PrivateAttr

Script = Callable[[str, Sequence[BaseMessage]], "str | AIMessage"]
"""From the stage ("extraction", "joint" or "claim") and the messages to the reply."""


class ScriptedModel(BaseChatModel):
    """Replies as its script says; an exception that the script raises is the model's."""

    script: Script = Field(exclude=True)

    _requests: list[tuple[str, list[BaseMessage]]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

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
        with self._lock:
            self._requests.append((stage, messages))
        reply = self.script(stage, messages)
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])


def stage_of(messages: Sequence[BaseMessage]) -> str:
    """What a request is for, by the tags around what it judges."""
    text = "\n".join(str(message.content) for message in messages if message.type == "human")
    for tag, stage in (("answer", "extraction"), ("claims", "joint"), ("claim", "claim")):
        if re.search(rf"<{tag}-\w+>", text):
            return stage
    raise AssertionError(f"no stage can be told from {text!r}")


def isolated(tag: str, messages: Sequence[BaseMessage]) -> str:
    """The text that stands between the last delimiters of a tag."""
    text = "\n".join(str(message.content) for message in messages if message.type == "human")
    return re.findall(rf"<({tag}-\w+)>\n(.*?)\n</\1>", text, re.DOTALL)[-1][1]


def scripted(extraction: str, **labels: str) -> ScriptedModel:
    """A model that gives one extraction, and one reply to every check."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return extraction if stage == "extraction" else labels[stage]

    return ScriptedModel(script=script)
