"""A chat model that needs nothing but this process: llama.cpp, in process, spoken to as OpenAI.

xllamacpp runs llama.cpp's own server on a thread of this process; `ChatLocal` is langchain-openai's
client pointed at it. The server starts at the first call, one for each file of weights.
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import gc
import importlib
import os
import secrets
import socket
import threading
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

from demur._forks import end_abruptly, in_child, lock
from demur.errors import LocalModelError, MissingExtraError
from demur.local.weights import QWEN, Weights, verified_weights
from demur.runtime import CallPolicy

# --- The server --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Endpoint:
    """Where a running server listens, and the key that it asks for."""

    url: str
    key: str


_lock = lock()
_running: dict[tuple[Weights, int], tuple[_Endpoint, Any]] = {}
"""By weights and context length. Only this dict holds the server objects: see `_stop_all`."""
_exiting = threading.Event()
_forked = False
"""Whether this process was forked from one in which a server ran."""


def _endpoint(weights: Weights, n_ctx: int) -> _Endpoint:
    """The server of this process for these weights, started if there is none."""
    with _lock:
        if (weights, n_ctx) not in _running:
            if not _running and not _forked:
                atexit.register(_stop_all)
            _running[weights, n_ctx] = _start(weights, n_ctx)
        return _running[weights, n_ctx][0]


def _start(weights: Weights, n_ctx: int) -> tuple[_Endpoint, Any]:
    runtime = _runtime()
    params = runtime.CommonParams()
    params.model.path = str(weights.path)
    params.model_alias = {_name(weights)}  # else replies name the path
    params.n_ctx = n_ctx
    # One slot keeps one prefix cache warm; more add no throughput on a few cores.
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _cpus()
    # States of earlier prompts kept in memory, in MiB: the default is 8 GiB.
    params.cache_ram_mib = 512
    params.warmup = False
    params.offline = True
    params.verbosity = -1
    # Loopback, any free port, closed to whoever lacks the key and to every web page.
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
            f"llama.cpp could not load {weights.path}: it is no GGUF that it knows, or memory is "
            f"short for it and {n_ctx} tokens of context (n_ctx). For the official file, run: "
            "demur models pull"
        ) from error
    # The interpreter's own teardown, and a fork's, must never destroy it: see `_stop_all`.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    return _Endpoint(server.listening_address, key), server


def _name(weights: Weights) -> str:
    """What the model is called: without the path, which is nobody else's business."""
    official = weights.sha256 == QWEN.sha256
    return "qwen2.5-coder-1.5b-instruct" if official else weights.path.stem


def _runtime() -> Any:
    """Import xllamacpp, with OpenMP's threads set to sleep while they wait.

    They spin by default, and on cores that others use as well that costs a factor of 20 and more.
    OpenMP reads the setting once, as it is loaded.
    """
    name, before = "OMP_WAIT_POLICY", os.environ.get("OMP_WAIT_POLICY")
    os.environ[name] = before or "passive"
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise MissingExtraError("xllamacpp", "local", "the local model") from error
    except ImportError as error:  # of a library of the system, which pip does not install
        raise LocalModelError(
            f"llama.cpp cannot be loaded: {error}. Install the library that this names; on Debian "
            "and Ubuntu: apt-get install libgomp1"
        ) from error
    finally:
        if before is None:
            del os.environ[name]


def _cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stop_all() -> None:
    """Stop every server at exit; llama.cpp crashes if the process ends under a running request.

    A server stops once its connections have ended, and a request in flight in a daemon thread would
    hold its own open for good. So those are cut here, whatever HTTP library opened them.
    """
    _exiting.set()
    with _lock:
        ports = {int(endpoint.url.rpartition(":")[2]) for endpoint, _ in _running.values()}
        for candidate in gc.get_objects():
            # By its type: isinstance would ask proxies for what they stand for.
            if issubclass(type(candidate), socket.socket):
                try:
                    host, port = candidate.getpeername()[:2]
                    if host == "127.0.0.1" and port in ports:
                        candidate.shutdown(socket.SHUT_RDWR)
                except (OSError, TypeError, ValueError):
                    continue  # not connected, or no internet socket
        while _running:
            _, (_, server) = _running.popitem()
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(server))
            del server  # the last reference: its destructor stops the server and waits for it


def _forget() -> None:
    """A fork has the server's memory but none of its threads: it starts its own.

    llama.cpp's teardown would wait for the threads that are not there, so a fork leaves without it.
    """
    global _forked
    if not _running:
        return
    _running.clear()
    _forked = True
    atexit.unregister(_stop_all)
    end_abruptly()


in_child(_forget)


# --- The chat model ----------------------------------------------------------------------------

_CLIENTS = {"client", "async_client", "root_client", "root_async_client"}


class ChatLocal(ChatOpenAI):
    """A chat model that runs in this process, on weights that were verified.

    Making one looks for the weights; the first call loads them (seconds, and 2 GB of memory for the
    default model). All models on the same weights share a server. Takes ChatOpenAI's arguments too.

    Raises:
        MissingExtraError: The runtime is not installed.
        LocalModelError: There are no weights, or other ones than expected; or they do not load.
    """

    gguf: str | Path | None = None
    """A GGUF of the user's own; None for `DEMUR_GGUF`, or else what `demur models pull` fetched."""
    sha256: str | None = None
    """The sha256 by which the user vouches for `gguf`, if it is not Qwen's official file."""
    n_ctx: int = Field(default=8192, ge=1)
    """Context length in tokens, prompt and answer together."""
    call_policy: CallPolicy = CallPolicy(attempts=1, timeout=1800, deadline=1800, max_concurrency=1)
    """How demur calls it: one call at a time, since more would only wait in the server's queue, and
    patiently, since a slow machine is not a fault."""

    model_name: str = Field(default="", alias="model")
    """By default the name of the weights."""
    temperature: float | None = 0.0
    max_tokens: int | None = Field(default=1024, alias="max_completion_tokens")
    """A small model may run on without end; None lets it fill the context."""
    max_retries: int | None = 0
    request_timeout: float | tuple[float, float] | Any | None = Field(
        default=1800.0, alias="timeout"
    )
    stream_chunk_timeout: float | None = None
    """None: a long prompt, or a call ahead of this one, keeps a stream silent for minutes."""
    stream_usage: bool | None = True
    use_responses_api: bool | None = False

    _weights: Weights = PrivateAttr()
    _connected: _Endpoint | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def validate_environment(self) -> Self:
        """Find the runtime and the weights.

        In place of ChatOpenAI's, which makes the clients: here the first call makes them, when the
        server's address is known, and no setting meant for OpenAI's endpoint has a say.
        """
        _runtime()  # here, so that what it lacks is said before anything is asked
        self._weights = verified_weights(self.gguf, self.sha256)
        self.model_name = self.model_name or _name(self._weights)
        return self

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Clients that point at this process's server, for the length of a call."""
        endpoint = _endpoint(self._weights, self.n_ctx)
        if endpoint != self._connected:
            options: dict[str, Any] = {
                "base_url": f"{endpoint.url}/v1",
                "api_key": endpoint.key,
                "timeout": self.request_timeout,
                "max_retries": self.max_retries or 0,
                # A connection kept open would outlive its event loop, or be shared with a fork.
                "default_headers": {"Connection": "close", **(self.default_headers or {})},
            }
            # trust_env=False: a proxy has no business between this process and itself.
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
            if _exiting.is_set():
                # The interpreter is going, so `_stop_all` cut the connection. Only daemon threads
                # are left, and this one ends as they do, in silence.
                threading.Event().wait()
            raise

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
        """The weights' own tokens of `text`, from the server: tiktoken would fetch tables."""
        reply = self._post("/tokenize", {"content": text})
        return [int(token) for token in reply["tokens"]]

    def get_num_tokens_from_messages(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None = None,
        **kwargs: Any,
    ) -> int:
        """Tokens of the prompt that these messages (and tools) make with the model's template."""
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

    # Copies and pickles are made anew from the arguments, since clients are neither: they find or
    # start the server of the process that they wake up in.

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set - _CLIENTS}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return type(self)(**copy.deepcopy(self._arguments(), memo))

    # What LangChain's caches and traces know the model by. The weights' hash stands in for the
    # address, which changes: a cache on disk serves the next process, and these weights only.

    @property
    def fingerprint(self) -> str:
        """The sha256 of the weights: models with the same one answer alike."""
        return self._weights.sha256

    @property
    def _llm_type(self) -> str:
        return "demur-local"

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Not as LangChain's JSON, which holds no path; and its caches would key on that JSON."""
        return False

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        params = super()._get_invocation_params(stop=stop, **kwargs)
        return {**params, "weights": self._weights.sha256, "n_ctx": self.n_ctx}


def _rebuild(cls: type[Any], arguments: dict[str, Any]) -> Any:
    return cls(**arguments)
