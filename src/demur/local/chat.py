"""Run a chat model in this process: llama.cpp behind its own OpenAI-compatible server.

xllamacpp runs llama.cpp's server on a thread of this process. `ChatLocal` is langchain-openai's
client, pointed at that server. A server starts at the first call, one for each file of weights and
context length.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import importlib
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import Self

from demur._system import at_the_end, end_abruptly, in_child, is_ending, lock
from demur.errors import LocalModelError, MissingExtraError
from demur.local.cores import usable_cores
from demur.local.judges import ADAPTER, find_judge
from demur.local.weights import QWEN, Weights, verified_weights
from demur.runtime import CallPolicy

# --- The server --------------------------------------------------------------------------------

_GENERATION, _JUDGEMENT = 0, 1
"""The slots of a server with an adapter: each has a prefix cache of its own."""


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


@dataclass(frozen=True)
class _Endpoint:
    """Hold the address of a running server, and the key that it asks for."""

    url: str
    key: str


_lock = lock()
_running: dict[tuple[Weights, int, Weights | None], tuple[_Endpoint, Any]] = {}
"""The running servers, by weights, context length and adapter.

Only this dict holds the server objects: see `_stop_all`.
"""
_forked = False
"""Whether this process was forked from one in which a server ran."""


def _endpoint(weights: Weights, n_ctx: int, adapter: Weights | None) -> _Endpoint:
    """Return this process's server for these weights, started first if there is none."""
    wanted = weights, n_ctx, adapter
    while is_ending():  # a server that starts now would not be stopped
        time.sleep(0.05)
    with _lock:
        if wanted not in _running:
            _running[wanted] = _start(*wanted)
        return _running[wanted][0]


def _start(weights: Weights, n_ctx: int, adapter: Weights | None) -> tuple[_Endpoint, Any]:
    runtime = _runtime()
    params = runtime.CommonParams()
    params.model.path = str(weights.path)
    params.model_alias = {_name(weights)}  # otherwise replies would name the path
    params.n_ctx = n_ctx
    # One slot keeps one prefix cache warm; more add no throughput on a few cores.
    params.n_parallel = 1
    if adapter is not None:
        loaded = runtime.CommonAdapterLoraInfo()
        loaded.path, loaded.scale = str(adapter.path), 0.0  # a judgement asks for it
        params.lora_adapters = [loaded]
        # llama.cpp would reuse what it cached of a judgement for another request that begins alike.
        # So judgements have a slot of their own, of the same length. `kv_unified` would have the
        # slots share memory, which changes results in the last digits.
        params.n_parallel, params.n_ctx, params.kv_unified = 2, 2 * n_ctx, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = usable_cores()
    # States of earlier prompts kept in memory, in MiB: the default is 8 GiB. They are not used for
    # a slot that a request names.
    params.cache_ram_mib = 512 if adapter is None else 0
    params.warmup = False
    params.offline = True
    params.verbosity = -1
    # Loopback and any free port. Requests without the key, or from a web page, are refused.
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    key = secrets.token_urlsafe(32)
    params.api_keys = [key]
    params.cors_origins, params.cors_origins_explicit, params.cors_credentials = "", True, False
    params.ui = False
    params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    try:
        server = runtime.Server(params)
    except RuntimeError as error:
        raise LocalModelError(
            f"llama.cpp could not load {weights.path}: it is not a GGUF that llama.cpp can read, "
            f"or there is too little memory for it and {n_ctx} tokens of context. Free memory or "
            "lower n_ctx, or fetch the official file: demur models pull"
        ) from error
    # The interpreter's own teardown, and a fork's, must never destroy it: see `_stop_all`.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    return _Endpoint(server.listening_address, key), server


def _name(weights: Weights) -> str:
    """Return the model's name, without the path of the weights, which is private."""
    official = weights.sha256 == QWEN.sha256
    return "qwen2.5-coder-1.5b-instruct" if official else weights.path.stem


def _runtime() -> Any:
    """Import xllamacpp, with OpenMP's threads set to sleep while they wait.

    By default they spin, which is 20 and more times slower on cores that other work uses, too.
    OpenMP reads the setting once, when it is loaded.
    """
    name, before = "OMP_WAIT_POLICY", os.environ.get("OMP_WAIT_POLICY")
    os.environ[name] = before or "passive"
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise MissingExtraError("xllamacpp", "local", "the local model") from error
    except ImportError as error:  # a system library is missing, which pip does not install
        raise LocalModelError(
            f"llama.cpp cannot be loaded: {error}. Install the library that this names; on Debian "
            "and Ubuntu: apt-get install libgomp1"
        ) from error
    finally:
        if before is None:
            del os.environ[name]


def _stop_all() -> None:
    """Stop every server at exit: llama.cpp crashes if the process ends during a request.

    A server stops once its connections have ended. A request in flight in a daemon thread would
    keep its connection open for ever. So the connections are cut here, whatever HTTP library opened
    them.
    """
    if _forked or not _running:
        return
    with _lock:
        ports = {int(endpoint.url.rpartition(":")[2]) for endpoint, _ in _running.values()}
        for candidate in gc.get_objects():
            # Checked by type: isinstance would make proxies load the objects that they stand for.
            if issubclass(type(candidate), socket.socket):
                try:
                    host, port = candidate.getpeername()[:2]
                    if host == "127.0.0.1" and port in ports:
                        candidate.shutdown(socket.SHUT_RDWR)
                except (OSError, TypeError, ValueError):
                    continue  # not connected, or not an internet socket
        while _running:
            _, (_, server) = _running.popitem()
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(server))
            del server  # the last reference: its destructor stops the server and waits for it


def _forget() -> None:
    """Forget the servers in a forked process, which has their memory but none of their threads.

    The process starts servers of its own. llama.cpp's teardown would wait for the missing threads,
    so the process ends without it.
    """
    global _forked
    if not _running:
        return
    _running.clear()
    _forked = True
    end_abruptly()


in_child(_forget)
at_the_end(_stop_all)  # until then, answers that wait for a judge may ask it


# --- The chat model ----------------------------------------------------------------------------

_CLIENTS = {"client", "async_client", "root_client", "root_async_client"}


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
    _connected: _Endpoint | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def validate_environment(self) -> Self:
        """Find the runtime and the weights.

        This replaces the validator of `ChatOpenAI`, which makes the clients. Here the first call
        makes them, when the server's address is known. Settings for OpenAI's endpoint are ignored.
        """
        _runtime()  # here, so that a missing library is reported before the first call
        self._weights = verified_weights(self.gguf, self.sha256)
        self._adapter = _adapter_of(self._weights)
        self.model_name = self.model_name or _name(self._weights)
        return self

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Point the clients at this process's server for the length of a call."""
        endpoint = _endpoint(self._weights, self.n_ctx, self._adapter)
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
        return {"extra_body": {"id_slot": _JUDGEMENT, "lora": [{"id": 0, "scale": 1.0}]}}

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        payload = super()._get_request_payload(*args, **kwargs)
        if self._adapter is not None:
            body = payload.get("extra_body") or {}
            payload["extra_body"] = {"id_slot": _GENERATION, **body}
        return payload

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        with self._session():
            return super()._generate(*args, **kwargs)

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        with self._session():
            return await super()._agenerate(*args, **kwargs)

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
        if "extra_body" in kwargs:  # it may ask for the adapter
            identity["adapter"] = self.adapter_fingerprint
        return {**params, **identity}


def _rebuild(cls: type[Any], arguments: dict[str, Any]) -> Any:
    return cls(**arguments)
