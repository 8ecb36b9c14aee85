"""What is done otherwise with a model that runs in this process."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel


def is_local(model: BaseChatModel) -> bool:
    """Whether the model runs in this process."""
    # By its type's name, since importing the class would import langchain-openai.
    return model._llm_type == "demur-local"


def bounded(model: BaseChatModel, most: int) -> dict[str, Any]:
    """Options of a call that keep a small local model from running on."""
    return {"max_tokens": most} if is_local(model) else {}
