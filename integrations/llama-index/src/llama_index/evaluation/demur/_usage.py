"""Read tokens, the finish reason and log-probabilities from an LLM's response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from langchain_core.messages.ai import UsageMetadata
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

# The providers' names, in the order OpenAI, Anthropic, Bedrock, Gemini, Ollama.
_INPUT = (
    *("prompt_tokens", "input_tokens", "inputTokens"),
    *("prompt_token_count", "prompt_eval_count"),
)
_OUTPUT = (
    *("completion_tokens", "output_tokens", "outputTokens"),
    *("candidates_token_count", "eval_count"),
)
# Tokens that Anthropic, Bedrock and Gemini count separately, by the name that they are added to.
_APART: Mapping[str, tuple[str, ...]] = {
    "input_tokens": ("cache_creation_input_tokens", "cache_read_input_tokens"),
    "inputTokens": ("cacheWriteInputTokens", "cacheReadInputTokens"),
    "candidates_token_count": ("thoughts_token_count",),
}
_ENDS = ("finish_reason", "stop_reason", "stopReason", "done_reason")


def tokens_of(response: ChatResponse | CompletionResponse | None) -> UsageMetadata | None:
    """Return the tokens that a response reports, in LangChain's form, or None if it reports none.

    LlamaIndex has no field for tokens. They are in what the provider sent (`raw`) or in
    `additional_kwargs`, under the provider's own names.
    """
    if response is None:
        return None
    for holder in _holders(response):
        read, written = _count(holder, _INPUT), _count(holder, _OUTPUT)
        if read or written:
            return UsageMetadata(
                input_tokens=read, output_tokens=written, total_tokens=read + written
            )
    return None


def metadata_of(response: ChatResponse) -> dict[str, Any]:
    """Return `finish_reason` and `logprobs` of a response, in OpenAI's form.

    A key is left out if the response has no such value.
    """
    reason = _finish_reason(response)
    content = _logprobs(response)
    return {
        **({"finish_reason": reason} if reason else {}),
        **({"logprobs": {"content": content}} if content else {}),
    }


def _holders(response: ChatResponse | CompletionResponse) -> Iterator[object]:
    raw = response.raw
    for name in ("usage", "usage_metadata"):
        yield _get(raw, name)
    yield raw  # Ollama puts them beside the text
    yield response.additional_kwargs
    if isinstance(response, ChatResponse):
        yield response.message.additional_kwargs  # a model that only completes puts them here


def _count(holder: object, names: tuple[str, ...]) -> int:
    for name in names:
        if found := sum(_number(holder, one) for one in (name, *_APART.get(name, ()))):
            return found
    return 0


def _number(holder: object, name: str) -> int:
    found = _get(holder, name)
    return found if type(found) is int and found > 0 else 0


def _finish_reason(response: ChatResponse) -> str | None:
    raw = response.raw
    for holder in (_first(raw, "choices"), _first(raw, "candidates"), raw):
        for name in _ENDS:
            found = _get(holder, name)
            reason = found.value if isinstance(found, Enum) else found
            if isinstance(reason, str) and reason:
                return reason
    return None


def _logprobs(response: ChatResponse) -> list[dict[str, Any]]:
    """Return the chosen token at each position, with its alternatives."""
    alternatives = (
        [{"token": one.token, "logprob": one.logprob} for one in several]
        for several in response.logprobs or ()
    )
    return [{**top[0], "top_logprobs": top} for top in alternatives if top]


def _first(holder: object, name: str) -> object:
    found = _get(holder, name)
    return found[0] if isinstance(found, (list, tuple)) and found else None


def _get(holder: object, name: str) -> Any:
    """Return a value of a mapping or of an object, because providers' packages return both."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
