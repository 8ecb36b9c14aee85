"""Run llama.cpp's server in this process: xllamacpp runs it on a thread.

There is one server for each file of weights and context length. It starts at the first call, and
ends with the process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import secrets
import socket
import time
from dataclasses import dataclass
from typing import Any

from demur._system import at_the_end, end_abruptly, in_child, is_ending, lock
from demur.errors import LocalModelError, MissingExtraError
from demur.local.cores import usable_cores
from demur.local.weights import QWEN, Weights


@dataclass(frozen=True)
class Endpoint:
    """Hold the address of a running server, and the key that it asks for."""

    url: str
    key: str


_lock = lock()
_running: dict[tuple[Weights, int], tuple[Endpoint, Any]] = {}
"""The running servers, by weights and context length.

Only this dict holds the server objects: see `_stop_all`.
"""
_forked = False
"""Whether this process was forked from one in which a server ran."""


def endpoint_of(weights: Weights, n_ctx: int) -> Endpoint:
    """Return this process's server for these weights, started first if there is none."""
    wanted = weights, n_ctx
    while is_ending():  # a server that starts now would not be stopped
        time.sleep(0.05)
    with _lock:
        if wanted not in _running:
            _running[wanted] = _start(*wanted)
        return _running[wanted][0]


def _start(weights: Weights, n_ctx: int) -> tuple[Endpoint, Any]:
    runtime = load_runtime()
    params = runtime.CommonParams()
    params.model.path = str(weights.path)
    params.model_alias = {name_of(weights)}  # otherwise replies would name the path
    params.n_ctx = n_ctx
    # One slot keeps one prefix cache warm; more add no throughput on a few cores.
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = usable_cores()
    params.cache_ram_mib = 512  # for states of earlier prompts: the default is 8 GiB
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
    return Endpoint(server.listening_address, key), server


def name_of(weights: Weights) -> str:
    """Return the model's name, without the path of the weights, which is private."""
    official = weights.sha256 == QWEN.sha256
    return "qwen2.5-coder-1.5b-instruct" if official else weights.path.stem


def load_runtime() -> Any:
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
