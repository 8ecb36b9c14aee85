"""Use the chain without a guard, as the control: a guard has to hold back what leaks here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

SETTINGS = ("default",)


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask a prompt and a model in LangChain's modes."""
    prompt = ChatPromptTemplate.from_template("{context}\n\nAnswer briefly: {question}")
    chain = prompt | ChatOpenAI(model="chain", base_url=url, api_key="none") | StrOutputParser()

    def given(question: str, contexts: list[str]) -> dict[str, Any]:
        return {"question": question, "context": contexts}

    async def whole(*call: Any) -> AsyncIterator[str]:
        yield await chain.ainvoke(given(*call))

    def stream(*call: Any) -> Iterator[str]:
        yield from chain.stream(given(*call))

    async def astream(*call: Any) -> AsyncIterator[str]:
        async with aclosing(chain.astream(given(*call))) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    return {"whole": whole, "stream": stream, "astream": astream}
