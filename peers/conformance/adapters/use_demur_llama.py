"""Use demur's guarded query engine, as "Guard a query engine" in docs/llama-index.md shows."""

from __future__ import annotations

import json
from typing import Any

import httpx
from _engines import aask, engine
from langchain_openai import ChatOpenAI
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

from demur import CallPolicy
from llama_index.evaluation.demur import GuardedQueryEngine, RefCheckerEvaluator

SETTINGS = ("buffer", "sentence")


# One client for all calls, as in SDKs, because making a client takes longer than a request.
_LIMITS = httpx.Limits(max_connections=None)
_CLIENT = httpx.Client(timeout=60, limits=_LIMITS)
_ACLIENT = httpx.AsyncClient(timeout=60, limits=_LIMITS)


class _Chain(CustomLLM):
    """Ask the chain's model.

    LlamaIndex's own class for OpenAI is not among demur's requirements.
    """

    url: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=128_000, model_name="chain")

    def _request(self, prompt: str, stream: bool) -> dict[str, Any]:
        said = {"model": "chain", "stream": stream}
        return {
            "url": f"{self.url}/chat/completions",
            "json": {**said, "messages": [{"role": "user", "content": prompt}]},
        }

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return _read(_CLIENT.post(**self._request(prompt, False)))

    async def acomplete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return _read(await _ACLIENT.post(**self._request(prompt, False)))

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        text = ""
        with _CLIENT.stream("POST", **self._request(prompt, True)) as response:
            for delta in map(_delta, response.iter_lines()):
                text += delta
                yield CompletionResponse(text=text, delta=delta)

    async def astream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        async def pieces() -> Any:
            text = ""
            async with _ACLIENT.stream("POST", **self._request(prompt, True)) as response:
                async for line in response.aiter_lines():
                    text += (delta := _delta(line))
                    yield CompletionResponse(text=text, delta=delta)

        return pieces()


def _read(response: httpx.Response) -> CompletionResponse:
    return CompletionResponse(text=response.json()["choices"][0]["message"]["content"])


def _delta(line: str) -> str:
    if not line.startswith("data: {"):
        return ""
    return str(json.loads(line[6:])["choices"][0]["delta"].get("content", ""))


def modes(setting: str, url: str, timeout: float) -> dict[str, Any]:
    """Return the ways to ask a guarded engine with default arguments, except for `streaming`."""
    chain = _Chain(url=url)
    judge = ChatOpenAI(model="judge", base_url=url, api_key="none")
    checker = RefCheckerEvaluator(judge, call_policy=CallPolicy(timeout=timeout))
    return aask(
        GuardedQueryEngine(engine(chain, False), checker, streaming=setting),  # type: ignore[arg-type]
        GuardedQueryEngine(engine(chain, True), checker, streaming=setting),  # type: ignore[arg-type]
    )
