"""Ask a model one question, and keep the reason if no reply came."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from demur.exemplars import few_shot_prompt
from demur.runtime import ChatCall, Outcome, Reply, ask_all, bounded, drive

ANSWER_TOKENS = 128
"""The most tokens that an answer may take."""


def replied(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    stage: str,
    tokens: int,
    config: RunnableConfig,
) -> Outcome[Reply]:
    """Return a model's reply, or the reason why there is none.

    Args:
        model: The model to ask.
        messages: The prompt.
        stage: What the call is for.
        tokens: The most tokens that the reply may take.
        config: The config whose callbacks count the call.
    """
    call = ChatCall(model, messages, stage, bounded(model, tokens))
    (outcome,), _ = drive(ask_all([call]), config, None)
    return outcome


def answered(
    model: BaseChatModel,
    question: str,
    config: RunnableConfig,
    selector: BaseExampleSelector | None = None,
) -> Outcome[str]:
    """Return a model's answer to a question, or the reason why there is none.

    If a selector is given, the prompt holds its examples.
    """
    messages = few_shot_prompt(selector).invoke({"question": question}).to_messages()
    outcome = replied(model, messages, "answering", ANSWER_TOKENS, config)
    if outcome.error is not None:
        return Outcome(error=outcome.error)
    text = outcome.value.text.strip()
    return Outcome(text) if text else Outcome(error="the model answered nothing")
