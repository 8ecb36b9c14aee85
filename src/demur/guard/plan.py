"""What a guard does in every call: its arguments, resolved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from demur.guard.budget import Budget
from demur.guard.feedback import Feedback
from demur.guard.recovery import Policy
from demur.schema import OnAbstain
from demur.shapes import Reader

OnError = Literal["open", "closed", "raise"]


@dataclass(frozen=True)
class Plan:
    """See `Guard` for what they mean."""

    chain: Runnable[Any, Any]
    evaluators: Sequence[tuple[str, Runnable[Any, Any]]]
    """With their names."""
    policy: Policy
    budget: Budget
    on_error: OnError
    on_abstain: OnAbstain
    question: Reader | None
    answer: Reader | None
    contexts: Reader | None
    with_feedback: Callable[[Any, Feedback], Any] | None
    chat: BaseChatModel | None
    retriever: Runnable[str, Any] | None
