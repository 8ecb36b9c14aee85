"""Serve OpenAI's chat protocol locally, as the chain's model and as the judge.

The name of the model says which of the two is asked. The path says how the judge behaves
(`http://127.0.0.1:PORT/BEHAVIOUR/v1`). The number in the prompt says what the answer is. So
hundreds of requests at a time need no state. If the client closes a connection, its request ends at
once and is counted.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.serving import completion, http, text_of

from . import facts, judge

BEHAVIOURS = ("normal", "500", "429", "garbage", "empty", "silent")
"""The behaviours of the judge. "silent": it takes the request and never answers."""
CHAIN, JUDGE = "chain", "judge"
"""The names of the two models."""
TOKEN_SECONDS = 0.001
"""The seconds between two tokens of a stream."""
LATENCY = 0.02
"""The seconds until a model answers, or until its first token."""
SLOW_TOKEN_SECONDS, SLOW_LATENCY = 0.05, 8.0
"""The same two times of the slow models."""
GARBAGE = "%%% ~~ 0x1F lorem ipsum dolor ;; <<>>"


@dataclass
class Seen:
    """Hold what was asked."""

    open: Counter[str] = field(default_factory=Counter)
    """The requests under way, by model."""
    asked: Counter[str] = field(default_factory=Counter)
    """The requests, by model."""
    abandoned: Counter[str] = field(default_factory=Counter)
    """The requests whose client went away, by model."""
    judged: dict[int, set[str]] = field(default_factory=dict)
    """The canaries that were in a text under judgement, by call."""
    prompts: dict[int, str] = field(default_factory=dict)
    """The last prompt of a judge, by call."""
    mixed: int = 0
    """The number of a judge's prompts that have marks of several calls."""
    unknown: list[str] = field(default_factory=list)
    """The beginnings of prompts that the judge does not know, because an adapter is wrong."""
    chained: Counter[int] = field(default_factory=Counter)
    """The requests to the chain, by call."""


class Server:
    """Represent a running server, which `serving` starts."""

    def __init__(self) -> None:
        """Start with no requests."""
        self.seen = Seen()
        self.port = 0

    def url(self, behaviour: str = "normal") -> str:
        """Return the base URL under which the judge has this behaviour."""
        return f"http://127.0.0.1:{self.port}/{behaviour}/v1"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection until it is closed."""
        early: bytes | None = b""
        try:
            while early is not None and (head := await _head(reader, early)) is not None:
                method, path, length = head
                body = await reader.readexactly(length) if length else b""
                if method == "GET":
                    await _send(writer, 200, {"open": dict(self.seen.open)})
                    early = b""
                else:
                    early = await self._answer(path, json.loads(body), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a client went away, as one check wants, or the server is ending
        finally:
            writer.close()

    async def _answer(
        self,
        path: str,
        request: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bytes | None:
        """Answer one request.

        Returns:
            What was read of the next request, or None if the client went away.
        """
        model = str(request.get("model"))
        self.seen.asked[model] += 1
        self.seen.open[model] += 1
        replying = asyncio.ensure_future(self._reply(model, path.split("/")[1], request, writer))
        # No client sends anything before its reply, so a read means that the connection ended.
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({replying, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not replying.done():
                self.seen.abandoned[model] += 1
                return None
            await replying
        finally:
            self.seen.open[model] -= 1
            for task in (replying, leaving):
                task.cancel()
            await asyncio.gather(replying, leaving, return_exceptions=True)
        # The next request may arrive before this read is cancelled.
        return b"" if leaving.cancelled() else leaving.result() or None

    async def _reply(
        self, model: str, behaviour: str, request: dict[str, Any], writer: asyncio.StreamWriter
    ) -> None:
        messages = request["messages"]
        text = json.dumps(messages)
        call = facts.asked_about(text)
        stream = bool(request.get("stream"))
        if model == CHAIN:
            said, slow = self._speak(call), call in facts.SLOW_CHAIN
        else:
            said, slow = self._judge(call, messages), call in facts.SLOW_JUDGE
            behaved = await _misbehave(behaviour, writer)
            if behaved is None:
                return
            said = said if behaved == "normal" else behaved.removeprefix("text:")
        # A slow chain that streams sends its first tokens soon and its last ones late.
        if not stream or model == JUDGE:
            await asyncio.sleep(SLOW_LATENCY if slow else LATENCY)
        if stream:
            await _stream(writer, model, said, SLOW_TOKEN_SECONDS if slow else TOKEN_SECONDS)
        else:
            written = len(text) // 4, len(said) // 4
            await _send(writer, 200, completion(model, said, *written))

    def _speak(self, call: int | None) -> str:
        if call is None:
            return "Nothing is known of that."
        self.seen.chained[call] += 1
        wrong = facts.is_wrong(call)
        if call in facts.RECOVERS:
            wrong = wrong and self.seen.chained[call] == 1
        return facts.answer(call, wrong)

    def _judge(self, call: int | None, messages: list[dict[str, Any]]) -> str:
        try:
            reading = judge.read(messages)
        except judge.UnknownPromptError as error:
            self.seen.unknown.append(str(error))
            return GARBAGE
        at = call if call is not None else -1
        self.seen.judged.setdefault(at, set()).update(facts.canaries(reading.text))
        self.seen.prompts[at] = "\n".join(map(text_of, messages))
        self.seen.mixed += len(facts.numbers(self.seen.prompts[at])) > 1
        return reading.reply(facts.supported(reading.text, reading.evidence))


async def _misbehave(behaviour: str, writer: asyncio.StreamWriter) -> str | None:
    """Do what the path says.

    Returns:
        "normal"; "text:" and what to say in place of a verdict; or None if the request is finished.
    """
    if behaviour in ("500", "429"):
        await _send(writer, int(behaviour), {"error": {"message": "told to", "code": None}})
        return None
    if behaviour == "silent":
        await asyncio.sleep(3600)
    return {"garbage": f"text:{GARBAGE}", "empty": "text:"}.get(behaviour, "normal")


async def _head(reader: asyncio.StreamReader, early: bytes) -> tuple[str, str, int] | None:
    """Return the next request's method, path and length, or None if the connection has ended."""
    try:
        head = (early + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    fields = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    method, path, _ = first.split(" ", 2)
    return method, path, int(fields.get("content-length", 0))


async def _send(writer: asyncio.StreamWriter, status: int, said: dict[str, Any]) -> None:
    writer.write(http(status, json.dumps(said).encode()))
    await writer.drain()


async def _stream(
    writer: asyncio.StreamWriter, model: str, said: str, seconds_a_token: float
) -> None:
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    writer.write(head.encode())
    pieces = list(facts.words(said))
    # Long answers come in larger pieces, because their length matters here, not their pace.
    size = 1 + len(pieces) // 2000
    async for event in _events(model, pieces, size, seconds_a_token):
        line = f"data: {event}\n\n".encode()
        writer.write(b"%x\r\n%b\r\n" % (len(line), line))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _events(
    model: str, pieces: list[str], size: int, seconds_a_token: float
) -> AsyncIterator[str]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        kind = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
        return json.dumps({**kind, "model": model, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for at in range(0, len(pieces), size):
        await asyncio.sleep(seconds_a_token)
        yield chunk({"content": "".join(pieces[at : at + size])})
    yield chunk({}, "stop")
    yield "[DONE]"


@contextmanager
def serving() -> Iterator[Server]:
    """Serve on a free port of the loopback interface for the length of a `with` block."""
    server = Server()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="conformance server", daemon=True)
    thread.start()

    async def start() -> asyncio.Server:
        # The backlog has room for 500 clients.
        return await asyncio.start_server(server.handle, "127.0.0.1", 0, backlog=2048)

    listening = asyncio.run_coroutine_threadsafe(start(), loop).result()
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_close(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(listening: asyncio.Server) -> None:
    listening.close()
    own = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not own]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
