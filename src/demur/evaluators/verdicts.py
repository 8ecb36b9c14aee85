"""Turn a verdict into an evaluation, and ask once more after an unreadable reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import JsonValue

from demur.runtime import ChatCall, Steps, UndeterminedError, ask, bounded
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Failure, Sample

T = TypeVar("T")

_AGAIN = "That cannot be read. Reply with one word and nothing else:"
_SILENCE = "..."
"""The text in place of an empty reply, which some endpoints refuse in a conversation."""


def ask_until_read(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    stage: str,
    read: Callable[[str], T | None],
    words: str,
    most: int,
    replies: list[str],
) -> Steps[T]:
    """Ask a model, and ask once more if its reply cannot be read.

    Args:
        model: The model.
        messages: The messages that ask.
        stage: The stage under which the usage of the calls is counted.
        read: A function from a reply to its meaning, or None if the reply cannot be read.
        words: The words of which the reply should be one, named in the second call.
        most: The most tokens of a local model's reply.
        replies: The list to which each reply is added.

    Returns:
        The result of `read`.

    Raises:
        UndeterminedError: A call failed, or neither reply can be read.
    """
    text = ""
    for _ in range(2):
        text = (yield from ask(ChatCall(model, messages, stage, bounded(model, most)))).text
        replies.append(text)
        verdict = read(text)
        if verdict is not None:
            return verdict
        answer = text.strip() or _SILENCE
        messages = [*messages, AIMessage(answer), HumanMessage(f"{_AGAIN} {words}")]
    raise UndeterminedError(f"no verdict in two replies: expected {words}, got {text!r}")


def evaluation(
    name: str, factual: bool, explanation: str, details: Mapping[str, JsonValue]
) -> Evaluation:
    """Return the evaluation of an answer that was judged as a whole: its score is 1 or 0."""
    return Evaluation(
        name=name,
        score=float(factual),
        label=FACTUAL if factual else NON_FACTUAL,
        passed=factual,
        failure=None if factual else Failure.OTHER,
        explanation=explanation,
        details=dict(details),
    )


def refuse_empty(sample: Sample) -> None:
    """Refuse an empty answer, in which there is nothing to judge.

    Raises:
        UndeterminedError: The answer is empty.
    """
    if not sample.answer.strip():
        raise UndeterminedError("the answer is empty: there is nothing to judge")
