"""Run a chat model in this process: llama.cpp behind its own OpenAI-compatible server.

`ChatLocal` is langchain-openai's client, pointed at that server (`server.py`). Only what asks for
demur's adapter goes to a judge of its own (`decoder.py`).
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import Self

from demur._system import is_ending
from demur.errors import MissingExtraError
from demur.local.decoder import first_token
from demur.local.judge_files import adapted_judge
from demur.local.judges import ADAPTER, find_judge
from demur.local.server import Endpoint, endpoint_of, load_runtime, name_of
from demur.local.weights import QWEN, Weights, verified_weights
from demur.runtime import CallPolicy

_CLIENTS = {"client", "async_client", "root_client", "root_async_client"}
_ADAPTED = "adapted"
"""The call option that asks for the adapter."""


def _adapter_of(weights: Weights) -> Weights | None:
    """Return the adapter with which a model of these weights judges claims, or None.

    Raises:
        LocalModelError: The adapter's file is missing or damaged.
    """
    if weights.sha256 != QWEN.sha256:
        return None
    try:
        return find_judge(ADAPTER)
    except MissingExtraError:
        return None


class ChatLocal(ChatOpenAI):
    """Run a chat model in this process, on weights whose sha256 was verified.

    Creating a `ChatLocal` looks for the weights. The first call loads them, which takes some
    seconds, and 2 GB of memory for the default model. All models with the same weights and `n_ctx`
    share a server. The arguments of `ChatOpenAI` are accepted, too.

    Raises:
        MissingExtraError: The runtime is not installed.
        LocalModelError: The weights are missing, have another sha256 than expected, or cannot be
            loaded.
    """

    gguf: str | Path | None = None
    """The path of a GGUF of your own.

    None: the path in `DEMUR_GGUF`, else the file that `demur models pull` fetched.
    """
    sha256: str | None = None
    """The sha256 by which you vouch for `gguf`, if it is not Qwen's official file."""
    n_ctx: int = Field(default=8192, ge=1)
    """The context length in tokens, for prompt and answer together."""
    call_policy: CallPolicy = CallPolicy(attempts=1, timeout=1800, deadline=1800, max_concurrency=1)
    """How demur calls the model: one call at a time, with a timeout of half an hour.

    More calls would only wait in the server's queue, and a slow machine is not a fault.
    """

    model_name: str = Field(default="", alias="model")
    """The model's name; by default that of the weights."""
    temperature: float | None = 0.0
    max_tokens: int | None = Field(default=1024, alias="max_completion_tokens")
    """The most tokens of a reply, since a small model may generate without end.

    None: the reply may fill the context.
    """
    max_retries: int | None = 0
    request_timeout: float | tuple[float, float] | Any | None = Field(
        default=1800.0, alias="timeout"
    )
    stream_chunk_timeout: float | None = None
    """The timeout between chunks of a stream.

    None by default: a long prompt, or an earlier call, can keep a stream silent for minutes.
    """
    stream_usage: bool | None = True
    use_responses_api: bool | None = False

    _weights: Weights = PrivateAttr()
    _adapter: Weights | None = PrivateAttr(default=None)
    _connected: Endpoint | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def validate_environment(self) -> Self:
        """Find the runtime and the weights.

        This replaces the validator of `ChatOpenAI`, which makes the clients. Here the first call
        makes them, when the server's address is known. Settings for OpenAI's endpoint are ignored.
        """
        load_runtime()  # here, so that a missing library is reported before the first call
        self._weights = verified_weights(self.gguf, self.sha256)
        self._adapter = _adapter_of(self._weights)
        self.model_name = self.model_name or name_of(self._weights)
        return self

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Point the clients at this process's server for the length of a call."""
        endpoint = endpoint_of(self._weights, self.n_ctx)
        if endpoint != self._connected:
            options: dict[str, Any] = {
                "base_url": f"{endpoint.url}/v1",
                "api_key": endpoint.key,
                "timeout": self.request_timeout,
                "max_retries": self.max_retries or 0,
                # A connection kept open would outlive its event loop, or be shared with a fork.
                "default_headers": {"Connection": "close", **(self.default_headers or {})},
            }
            # trust_env=False: no proxy must stand between this process and itself.
            self.root_client = openai.OpenAI(
                **options, http_client=openai.DefaultHttpxClient(trust_env=False)
            )
            self.root_async_client = openai.AsyncOpenAI(
                **options, http_client=openai.DefaultAsyncHttpxClient(trust_env=False)
            )
            self.client = self.root_client.chat.completions
            self.async_client = self.root_async_client.chat.completions
            self._connected = endpoint
        try:
            yield
        except Exception:
            while is_ending():  # then `_stop_all` has cut the connection
                time.sleep(0.05)
            raise

    @property
    def judging(self) -> dict[str, Any] | None:
        """Return the call options with which the model judges claims by demur's adapter, or None.

        None: there is no adapter for these weights, or `demur-judge` is not installed.
        """
        if self._adapter is None:
            return None
        return {_ADAPTED: True}

    def _judged(self, messages: list[BaseMessage]) -> AIMessage:
        """Return the first token of the adapter's reply, as an endpoint returns it."""
        assert self._adapter is not None
        asked = [(one["role"], one["content"]) for one in convert_to_openai_messages(messages)]
        judged = adapted_judge(self._weights, self._adapter).judge(asked)
        first = first_token(judged.logprobs)
        return AIMessage(
            first["token"],
            response_metadata={
                "model_name": self.model_name,
                "finish_reason": "length",
                "logprobs": {"content": [first]},
            },
            usage_metadata=UsageMetadata(
                input_tokens=judged.tokens,
                output_tokens=1,
                total_tokens=judged.tokens + 1,
                input_token_details=InputTokenDetails(cache_read=judged.cached),
            ),
        )

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if kwargs.pop(_ADAPTED, False):
            return ChatResult(generations=[ChatGeneration(message=self._judged(messages))])
        with self._session():
            return super()._generate(messages, *args, **kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        if kwargs.get(_ADAPTED):
            return await asyncio.to_thread(self._generate, messages, **kwargs)
        with self._session():
            return await super()._agenerate(messages, *args, **kwargs)

    def _should_stream(self, **kwargs: Any) -> bool:
        return not kwargs.get(_ADAPTED) and super()._should_stream(**kwargs)

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        with self._session():
            yield from super()._stream(*args, **kwargs)

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        with self._session():
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    def get_token_ids(self, text: str) -> list[int]:
        """Return the ids of the tokens of `text`.

        The server tokenizes it, since tiktoken would download tables.
        """
        reply = self._post("/tokenize", {"content": text})
        return [int(token) for token in reply["tokens"]]

    def get_num_tokens_from_messages(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None = None,
        **kwargs: Any,
    ) -> int:
        """Return the number of tokens of messages and tools in the model's prompt template."""
        offered: dict[str, Any] = {}
        if tools:
            offered["tools"] = [convert_to_openai_tool(tool) for tool in tools]
        payload = self._get_request_payload(list(messages), **offered)
        return int(self._post("/v1/chat/completions/input_tokens", payload)["input_tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with self._session():
            assert self._connected is not None
            reply = self.root_client.post(f"{self._connected.url}{path}", body=body, cast_to=object)
        return dict(reply)

    # Clients can be neither copied nor pickled, so copies and pickles are rebuilt from the
    # arguments. They find or start the server of the process in which they are rebuilt.

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set - _CLIENTS}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return type(self)(**copy.deepcopy(self._arguments(), memo))

    # LangChain's caches and traces identify the model by what follows. The hash of the weights
    # replaces the address, which changes. So a cache on disk also serves later processes, and only
    # these weights.

    @property
    def fingerprint(self) -> str:
        """Return the sha256 of the weights; models with the same one answer alike."""
        return self._weights.sha256

    @property
    def adapter_fingerprint(self) -> str | None:
        """Return the sha256 of the adapter with which the model judges, or None without one."""
        return None if self._adapter is None else self._adapter.sha256

    @property
    def _llm_type(self) -> str:
        return "demur-local"

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False, since LangChain's JSON cannot hold a path.

        LangChain's caches would also use that JSON as their key.
        """
        return False

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        params = super()._get_invocation_params(stop=stop, **kwargs)
        identity = {"weights": self._weights.sha256, "n_ctx": self.n_ctx}
        if _ADAPTED in kwargs:
            identity["adapter"] = self.adapter_fingerprint
        return {**params, **identity}


def _rebuild(cls: type[Any], arguments: dict[str, Any]) -> Any:
    return cls(**arguments)
