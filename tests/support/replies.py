"""Provide models that give listed replies, and replies that have log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from support.fakes import ScriptedModel


def replying(*replies: str | AIMessage | Exception) -> ScriptedModel:
    """Return a model that gives these replies one after another; an exception is raised."""
    left = iter(replies)

    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return ScriptedModel(script=script)


def weighing(text: str, **shares: float) -> AIMessage:
    """Return a reply whose first token has these probabilities."""
    top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    return AIMessage(text, response_metadata=metadata)
