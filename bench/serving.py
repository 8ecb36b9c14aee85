"""Serve HTTP in a separate process, and count tokens, for the benchmarks.

A server has its own process, so that its costs are not counted as the client's. When it is ready it
prints one line of JSON, which has its URL.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from demur._text import count_tokens

_ROOT = Path(__file__).parent.parent


class Connection(asyncio.Protocol, ABC):
    """Speak as much of HTTP/1.1 as OpenAI's client does, one request after the other."""

    _received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Collect bytes until a request is complete."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if not found or (length and len(body) < int(length[1])):
            return
        self._received = b""  # a client waits for the reply before it sends the next request
        self.asked(head, body)

    @abstractmethod
    def asked(self, head: bytes, body: bytes) -> None:
        """Answer a request, now or later."""

    def write(self, response: bytes) -> None:
        """Send bytes, unless the client is gone."""
        if not self._transport.is_closing():
            self._transport.write(response)

    def close(self) -> None:
        """Close the connection, after everything was sent."""
        self._transport.close()


async def serve(connection: Callable[[], Connection], **told: Any) -> None:
    """Serve on a free port until the process is ended.

    Args:
        connection: A function that makes a connection for each client.
        told: What else the line of JSON has, beside the URL.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0, backlog=512)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"http://127.0.0.1:{port}/v1", **told}), flush=True)
    await server.serve_forever()


@contextmanager
def served(module: str, *arguments: object) -> Iterator[dict[str, Any]]:
    """Run a module that serves, for the length of a `with` block, and provide its line of JSON."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def tokenizer() -> tuple[Callable[[str], int], str]:
    """Return a function that counts tokens, and its name.

    It is OpenAI's tokenizer if its table is available. LlamaIndex ships the table, which tiktoken
    would otherwise fetch. TIKTOKEN_CACHE_DIR names another folder.
    """
    import tiktoken

    if (llama_index := find_spec("llama_index.core")) and llama_index.origin:
        tables = Path(llama_index.origin).parent / "_static" / "tiktoken_cache"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    try:
        encoding = tiktoken.get_encoding("o200k_base")
    except Exception as error:  # its HTTP client may raise anything
        why = f"no table for tiktoken here: {type(error).__name__}"
        return count_tokens, f"demur's estimate ({why}; TIKTOKEN_CACHE_DIR may name a folder of it)"
    return lambda text: len(encoding.encode(text, disallowed_special=())), "tiktoken, o200k_base"
