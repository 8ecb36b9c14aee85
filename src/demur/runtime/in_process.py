"""Recognise a model that runs in this process, and bound its replies."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel


def is_local(model: BaseChatModel) -> bool:
    """Return whether the model runs in this process."""
    # Compared by the name of its type: importing the class would import langchain-openai.
    return model._llm_type == "demur-local"


def bounded(model: BaseChatModel, most: int) -> dict[str, Any]:
    """Return call options that keep a small local model from generating without end.

    For other models there are none.
    """
    return {"max_tokens": most} if is_local(model) else {}
