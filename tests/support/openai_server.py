"""Run a real HTTP server that speaks OpenAI's chat protocol and replies as a test says."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_openai import ChatOpenAI

from support.serving import Handler, served
from support.waiting import until


@dataclass(frozen=True)
class Answer:
    """Describe what the server does with one request."""

    text: str | None = ""
    """The content of the message."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    held: threading.Event | None = None
    """The event that lets the answer go, which the test sets."""
    finish_reason: str = "stop"
    first_token: dict[str, float] | None = None
    """The log-probabilities of the first token's alternatives."""
    later_tokens: Sequence[dict[str, float]] = ()
    """Those of the tokens behind it."""
    body: bytes | None = None
    """The whole body, instead of a well-formed one."""
    sent: float = 1.0
    """The share of the body after which the connection is closed."""
    cut: bool = False
    """Whether to close the connection without an answer."""


@dataclass
class OpenAIServer:
    """Represent a running server and the requests that it received."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def model(self, **options: Any) -> ChatOpenAI:
        """Return a chat model that is a client of this server."""
        options = {"model": "test", "api_key": "key", "max_retries": 0, "temperature": 0, **options}
        return ChatOpenAI(base_url=self.url, **options)

    @property
    def judge(self) -> str:
        """Return the name of the judge that this server is, for a script that judges."""
        return f"judge:{self.url}"

    def prompts(self) -> list[str]:
        """Return the last message of each request."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def arrived(self, count: int) -> None:
        """Wait until so many requests have come."""
        until(lambda: len(self.requests) >= count)

    @contextmanager
    def counted(self, request: dict[str, Any]) -> Iterator[int]:
        """Count a request as active for the length of the block, and yield its number, from 0."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield number
        finally:
            with self._lock:
                self._now -= 1


Script = Callable[[dict[str, Any], int], "Answer | str"]
"""A function from the JSON of a request and its number to the server's answer."""


@contextmanager
def openai_server(script: Script | Sequence[Answer | str]) -> Iterator[OpenAIServer]:
    """Serve on a free port of the loopback for the length of the block.

    At its end, requests whose answers are still held get none.

    Args:
        script: A function, or the answers in order, of which the last one is repeated.
    """
    server = OpenAIServer("")
    closing = threading.Event()

    class Chatting(Handler):
        def respond(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.counted(request) as number:
                if callable(script):
                    answer = script(request, number)
                else:
                    answer = script[min(number, len(script) - 1)]
                if isinstance(answer, str):
                    answer = Answer(answer)
                gone = False
                while answer.held is not None and not (gone or answer.held.wait(0.05)):
                    gone = closing.is_set()
            if answer.cut or gone:
                self.close_connection = True
            elif request.get("stream") and answer.status == 200 and answer.body is None:
                self._stream(answer, request)
            else:
                self._reply(answer, request)

        def _reply(self, answer: Answer, request: dict[str, Any]) -> None:
            body = answer.body if answer.body is not None else _body(answer, request)
            self._head(answer, {"Content-Type": "application/json", "Content-Length": len(body)})
            self.wfile.write(body[: int(answer.sent * len(body))])
            self.close_connection = self.close_connection or answer.sent < 1

        def _stream(self, answer: Answer, request: dict[str, Any]) -> None:
            events = [f"data: {event}\n\n".encode() for event in _events(answer, request)]
            self._head(
                answer, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
            )
            # The end of a chunked body is marked, so that a client can tell a cut from an end.
            for event in events[: int(answer.sent * len(events))]:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            if answer.sent < 1:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def _head(self, answer: Answer, headers: dict[str, Any]) -> None:
            self.send_response(answer.status)
            for name, value in {**headers, **answer.headers}.items():
                self.send_header(name, str(value))
            self.end_headers()

    with served(Chatting) as url:
        server.url = f"{url}/v1"
        try:
            yield server
        finally:
            closing.set()


def _body(answer: Answer, request: dict[str, Any]) -> bytes:
    if answer.status != 200:
        return json.dumps({"error": {"message": answer.text or "told to", "code": None}}).encode()
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": answer.finish_reason,
    }
    if answer.first_token is not None:
        tops = [
            [{"token": t, "logprob": p, "bytes": None} for t, p in token.items()]
            for token in (answer.first_token, *answer.later_tokens)
        ]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top} for top in tops]}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [choice],
            "usage": _usage(answer, request),
        }
    ).encode()


def _events(answer: Answer, request: dict[str, Any]) -> list[str]:
    """Return the events of a streamed reply: words, finish reason, and the usage if requested."""

    def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    words = re.findall(r"\s*\S+\s*$|\s*\S+", answer.text or "")
    chunks = [chunk({"role": "assistant", "content": ""}, None)]
    chunks += [chunk({"content": word}, None) for word in words]
    chunks.append(chunk({}, answer.finish_reason))
    if (request.get("stream_options") or {}).get("include_usage"):
        chunks.append({"choices": [], "usage": _usage(answer, request)})
    kind = {"object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    return [json.dumps({"id": "chatcmpl-1", **kind, **one}) for one in chunks] + ["[DONE]"]


def _usage(answer: Answer, request: dict[str, Any]) -> dict[str, int]:
    prompt = sum(len(str(message["content"]).split()) for message in request["messages"])
    reply = len((answer.text or "").split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
    }
