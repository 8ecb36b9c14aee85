"""Use openai-guardrails as in "Quickstart", "Streaming vs blocking" and "Custom prompt check".

The client stands in place of OpenAI's, with a check of the output by the user's own prompt.
"default" lets an answer pass if its check failed. "raise_guardrail_errors" is the option that the
class documents for raising instead. The hallucination check needs a vector store at OpenAI (the
Responses API with file search), so it cannot run on a local server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from guardrails import GuardrailsAsyncOpenAI, GuardrailsOpenAI

SETTINGS = ("default", "raise_guardrail_errors")


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask both clients, with one check of the output."""
    check = {
        "name": "Custom Prompt Check",
        "config": {
            "model": "judge",
            "confidence_threshold": 0.7,
            "system_prompt_details": "Flag what the documents in the conversation do not support.",
        },
    }
    options: dict[str, Any] = {
        "config": {"version": 1, "output": {"version": 1, "guardrails": [check]}},
        "raise_guardrail_errors": setting == "raise_guardrail_errors",
        "base_url": url,
        "api_key": "none",
        "timeout": timeout,
    }
    client, aclient = GuardrailsOpenAI(**options), GuardrailsAsyncOpenAI(**options)

    def given(question: str, contexts: list[str]) -> dict[str, Any]:
        text = "\n".join([*contexts, "", question])
        return {"model": "chain", "messages": [{"role": "user", "content": text}]}

    async def whole(*call: Any) -> AsyncIterator[str]:
        response = await aclient.chat.completions.create(**given(*call))
        yield response.choices[0].message.content or ""

    def stream(*call: Any) -> Iterator[str]:
        for chunk in client.chat.completions.create(**given(*call), stream=True):
            yield chunk.choices[0].delta.content or ""

    async def astream(*call: Any) -> AsyncIterator[str]:
        chunks = await aclient.chat.completions.create(**given(*call), stream=True)
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk.choices[0].delta.content or ""

    return {"whole": whole, "stream": stream, "astream": astream}
