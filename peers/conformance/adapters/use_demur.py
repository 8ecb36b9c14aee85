"""Use demur's guard around a chain, as docs/guard.md and docs/streaming.md show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from demur import CallPolicy, Guard, RefChecker

SETTINGS = ("buffer", "sentence", "one call", "small", "small, sentence")


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask a guard with default arguments, except for `streaming`.

    "one call" does what the other products do: one request for a verdict, without retries. With
    "small", demur's own judge reads the answer in this process, and no endpoint is asked.
    """
    options: dict[str, Any] = {"base_url": url, "api_key": "none"}
    prompt = ChatPromptTemplate.from_template("{context}\n\nAnswer briefly: {question}")
    chain = prompt | ChatOpenAI(model="chain", **options) | StrOutputParser()
    judge = ChatOpenAI(model="judge", **options)
    policy = CallPolicy(timeout=timeout)
    if setting == "one call":
        checker = RefChecker(judge, claims="sentences", call_policy=policy)
        guard: Guard[Any, Any] = Guard(chain, checker, on_fail="block")
    else:
        small = setting.startswith("small")
        checker = RefChecker("small") if small else RefChecker(judge, call_policy=policy)
        streaming: Any = "sentence" if setting.endswith("sentence") else "buffer"
        guard = Guard(chain, checker, streaming=streaming)

    def given(question: str, contexts: list[str]) -> dict[str, Any]:
        return {"question": question, "context": contexts}

    async def whole(*call: Any) -> AsyncIterator[str]:
        yield await guard.ainvoke(given(*call))

    def stream(*call: Any) -> Iterator[str]:
        yield from guard.stream(given(*call))

    async def astream(*call: Any) -> AsyncIterator[str]:
        async with aclosing(guard.astream(given(*call))) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def events(*call: Any) -> AsyncIterator[str]:
        async for event in guard.astream_events(given(*call), version="v2"):
            if event["event"] != "on_chain_start":  # its data is what the client itself gave
                yield repr({**event["data"], "input": None})

    return {"whole": whole, "stream": stream, "astream": astream, "events": events}
