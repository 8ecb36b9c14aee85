"""Use LlamaIndex's engines that evaluate, as its page "Self-correcting query engines" shows.

"retry", "retry source" and "retry guideline" are the page's three engines, around a query engine
and with the evaluators that it names: faithfulness for the first two, guidelines for the third.
Their asynchronous methods are documented as not supported, so clients at the same time are threads.
"""

from __future__ import annotations

from typing import Any

from _engines import ask, engine
from llama_index.core import Settings
from llama_index.core.evaluation import FaithfulnessEvaluator, GuidelineEvaluator
from llama_index.core.query_engine import (
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
)
from llama_index.llms.openai_like import OpenAILike

SETTINGS = ("retry", "retry source", "retry guideline")


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask one of the three engines, around an engine that streams or not."""
    options: dict[str, Any] = {
        "api_base": url,
        "api_key": "none",
        "is_chat_model": True,
        "context_window": 128_000,
        # The class documents this for many calls. The evaluators open several event loops one
        # after another, and with one client in all of them calls in threads may never end.
        "reuse_client": False,
    }
    Settings.llm = chain = OpenAILike(model="chain", **options)
    judge = OpenAILike(model="judge", timeout=timeout, **options)

    def retrying(streaming: bool) -> Any:
        inner = engine(chain, streaming)
        if setting == "retry":
            return RetryQueryEngine(inner, FaithfulnessEvaluator(llm=judge))
        if setting == "retry source":
            return RetrySourceQueryEngine(inner, FaithfulnessEvaluator(llm=judge), llm=chain)
        guidelines = GuidelineEvaluator(llm=judge, guidelines="Every fact must be right.")
        return RetryGuidelineQueryEngine(inner, guidelines)

    return ask(retrying(False), retrying(True))
