"""Serve chat models in a separate process, and count tokens, for the benchmarks.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur._text import count_tokens

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

_ROOT = Path(__file__).parent.parent
_TAGGED = re.compile(r"<((\w+)-\w+)>\n(.*?)\n</\1>", re.DOTALL)
# The tokens that the chat format adds to the texts, for each message and for the reply.
_PER_MESSAGE, _PER_REPLY = 4, 3


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


def asking(url: str, name: str = "none") -> ChatOpenAI:
    """Return a client of a served model, which asks again for nothing by itself."""
    from langchain_openai import ChatOpenAI  # which a server does not need

    return ChatOpenAI(base_url=url, api_key="none", model=name, max_retries=0)


# --- What a request says ------------------------------------------------------------------------


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content is a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def tagged(prompt: str) -> dict[str, str]:
    """Return the texts that one of demur's prompts has between tags, by the tags' names."""
    return {tag: text for _, tag, text in _TAGGED.findall(prompt)}


def prompt_tokens(texts: Iterable[str], count: Callable[[str], int]) -> int:
    """Return the tokens of a request with messages of these texts."""
    return sum(count(text) + _PER_MESSAGE for text in texts) + _PER_REPLY


# --- What a server says -------------------------------------------------------------------------


def http(status: int, body: bytes, **headers: object) -> bytes:
    """Return an HTTP response with a body of JSON, of which the headers give the length."""
    fields = {"Content-Type": "application/json", "Content-Length": len(body), **headers}
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {of}" for name, of in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion(
    model: str, reply: str | None, read: int, written: int, times: int = 1, **of_choice: Any
) -> dict[str, Any]:
    """Return a chat completion of OpenAI's protocol.

    Args:
        model: The name of the model.
        reply: What it says; None: it has no content.
        read: The tokens of the request.
        written: The tokens of the reply.
        times: How often it says it.
        of_choice: Further fields of each choice.
    """
    message = {"role": "assistant", "content": reply}
    choice = {"message": message, "finish_reason": "stop", **of_choice}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": at, **choice} for at in range(times)],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }


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
