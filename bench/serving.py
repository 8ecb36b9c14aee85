"""What the servers of the benchmarks share: HTTP, a process of their own, and counting tokens.

A server has a process of its own, so that what it costs is not counted as the client's. When it is
ready it prints one line of JSON, in which its URL is.
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
    """As much of HTTP/1.1 as OpenAI's client speaks, one request after the other."""

    _received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what is written to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Wait until a request is whole."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if not found or (length and len(body) < int(length[1])):
            return
        self._received = b""  # a client waits for the reply before it sends the next request
        self.asked(head, body)

    @abstractmethod
    def asked(self, head: bytes, body: bytes) -> None:
        """Have a request answered, now or later."""

    def write(self, response: bytes) -> None:
        """Send bytes, unless the client is gone."""
        if not self._transport.is_closing():
            self._transport.write(response)

    def close(self) -> None:
        """End the connection, once all is sent."""
        self._transport.close()


async def serve(connection: Callable[[], Connection], **told: Any) -> None:
    """Serve on a free port until the process is ended.

    Args:
        connection: Makes one for each client.
        told: What else stands in the line that says where.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0, backlog=512)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"http://127.0.0.1:{port}/v1", **told}), flush=True)
    await server.serve_forever()


@contextmanager
def served(module: str, *arguments: object) -> Iterator[dict[str, Any]]:
    """The line of a module that serves, run as a process for the length of the block."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def tokenizer() -> tuple[Callable[[str], int], str]:
    """What counts tokens, and its name: OpenAI's tokenizer where its table can be had.

    LlamaIndex ships the table, which tiktoken would fetch. TIKTOKEN_CACHE_DIR names another folder.
    """
    import tiktoken

    if (llama_index := find_spec("llama_index.core")) and llama_index.origin:
        tables = Path(llama_index.origin).parent / "_static" / "tiktoken_cache"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    try:
        encoding = tiktoken.get_encoding("o200k_base")
    except Exception as error:  # whatever its HTTP client raises
        why = f"no table for tiktoken here: {type(error).__name__}"
        return count_tokens, f"demur's estimate ({why}; TIKTOKEN_CACHE_DIR may name a folder of it)"
    return lambda text: len(encoding.encode(text, disallowed_special=())), "tiktoken, o200k_base"
