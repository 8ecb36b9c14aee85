"""demur's middleware for LangChain's agents: docs/agents.md, "Guard an agent"."""

from __future__ import annotations

from typing import Any

from _agents import ask
from langchain_openai import ChatOpenAI

from demur import CallPolicy, RefChecker
from langchain_demur import HallucinationMiddleware

SETTINGS = ("default",)


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """The middleware with its defaults, told where the state has the documents."""
    judge = ChatOpenAI(model="judge", base_url=url, api_key="none")
    checker = RefChecker(judge, call_policy=CallPolicy(timeout=timeout))
    return ask(HallucinationMiddleware(checker, contexts="documents"), url)
