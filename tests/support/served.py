"""Serve the real judge in a process of its own, as `demur judge serve` and as llama.cpp do."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from demur.local import JUDGE_FILES, QWEN, find_judge, model_dir

_LLAMA_CPP = """
import importlib, sys, time
runtime = importlib.import_module("xllamacpp")
weights, adapter, port = sys.argv[1:]
params = runtime.CommonParams()
params.model.path, params.model_alias = weights, {"demur-judge"}
if adapter:
    lora = runtime.CommonAdapterLoraInfo()
    lora.path, lora.scale = adapter, 1.0
    params.lora_adapters = [lora]
params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 2048, 1, False, -1
params.hostnames, params.port = ["127.0.0.1"], int(port)
server = runtime.Server(params)
time.sleep(3600)
"""


@contextmanager
def demur_judge_serve(port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `demur judge serve` for the length of the block; yield its address and its process."""
    command = [sys.executable, "-m", "demur", "judge", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        address = re.search(r"http://\S+", said)
        assert address, said
        yield address[0], process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@contextmanager
def llama_cpp(port: int = 0, with_adapter: bool = True) -> Iterator[str]:
    """Run llama.cpp's server for the length of the block, and yield its name as a judge."""
    (file,) = (file for file in JUDGE_FILES if file.endswith(".gguf"))
    weights, adapter = model_dir() / QWEN.file, find_judge(file).path if with_adapter else ""
    if not port:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
    command = [sys.executable, "-c", _LLAMA_CPP, str(weights), str(adapter), str(port)]
    process = subprocess.Popen(command)
    try:
        while True:
            assert process.poll() is None, "llama.cpp's server has ended"
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield f"judge:http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
