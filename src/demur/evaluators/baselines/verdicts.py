"""The evaluation that a verdict makes, and the one call after an unreadable reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import JsonValue

from demur.runtime import ChatCall, Steps, bounded
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Failure, Sample

T = TypeVar("T")

EMPTY = "the answer is empty: there is nothing to judge"

_AGAIN = "That cannot be read. Reply with one word and nothing else:"
_SILENCE = "..."
"""In place of an empty reply, which some endpoints refuse in a conversation."""


def ask_until_read(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    stage: str,
    read: Callable[[str], T | None],
    words: str,
    most: int,
) -> Steps[tuple[T | None, list[str], str | None]]:
    """Ask, and once more where the reply cannot be read.

    Args:
        model: Who is asked.
        messages: What is asked.
        stage: What the calls are accounted under.
        read: From a reply to what it says, or None.
        words: The words of which the reply should be one, for the second call.
        most: Tokens that a local model's reply may have.

    Returns:
        What was read, the replies, and why there is nothing if there is nothing.
    """
    replies: list[str] = []
    for _ in range(2):
        (outcome,) = yield [ChatCall(model, messages, stage, bounded(model, most))]
        if outcome.error is not None:
            return None, replies, outcome.error
        replies.append(outcome.value.text)
        verdict = read(replies[-1])
        if verdict is not None:
            return verdict, replies, None
        answer = replies[-1].strip() or _SILENCE
        messages = [*messages, AIMessage(answer), HumanMessage(f"{_AGAIN} {words}")]
    return None, replies, f"the verdict cannot be read, and neither can another: {replies[-1]!r}"


def evaluation(
    name: str, factual: bool, explanation: str, details: Mapping[str, JsonValue]
) -> Evaluation:
    """The evaluation of an answer that was judged as a whole: its score is 1 or 0."""
    return Evaluation(
        name=name,
        score=float(factual),
        label=FACTUAL if factual else NON_FACTUAL,
        passed=factual,
        failure=None if factual else Failure.OTHER,
        explanation=explanation,
        details=dict(details),
    )


def is_empty(sample: Sample) -> bool:
    """Whether there is nothing to judge."""
    return not sample.answer.strip()
