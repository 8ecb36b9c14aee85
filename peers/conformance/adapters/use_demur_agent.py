"""Use demur's middleware in a LangChain agent, as "Guard an agent" in docs/agents.md shows."""

from __future__ import annotations

from typing import Any

from _agents import ask
from langchain_openai import ChatOpenAI

from demur import CallPolicy, RefChecker
from langchain_demur import HallucinationMiddleware

SETTINGS = ("default",)


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask an agent whose middleware knows where the documents are."""
    judge = ChatOpenAI(model="judge", base_url=url, api_key="none")
    checker = RefChecker(judge, call_policy=CallPolicy(timeout=timeout))
    return ask(HallucinationMiddleware(checker, contexts="documents"), url)
