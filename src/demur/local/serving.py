"""Serve the judge of "local" to other processes and machines, over OpenAI's chat protocol.

`ServedJudge` is the client.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from demur.errors import needs
from demur.local.decoder import Judged, first_token
from demur.local.judges import SERVED_KEY, SERVED_NAME

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Judge = Callable[[Sequence[tuple[str, str]]], Judged]
"""A function from messages, each a role and a text, to a judgement: `Decoder.judge`."""

_MOST_BYTES = 1_000_000
"""The most bytes of a request. The judge reads at most 32,768 tokens."""
_MOST_WAITING = 512
"""The most requests that wait. Others get status 503, and are made again by their clients."""


class _Message(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class _Asked(BaseModel):
    model: str = SERVED_NAME
    messages: list[_Message] = Field(min_length=1)
    stream: Literal[False, None] = None


def serve(judge: Judge, listening: socket.socket, key: str | None) -> None:
    """Answer requests until the process is told to end.

    Args:
        judge: The judge.
        listening: A bound socket (`bound`).
        key: The key that each request has to give; None for none.

    Raises:
        MissingExtraError: Starlette or uvicorn is not installed.
    """
    with needs(None, "serve", "a server of the judge"):
        import uvicorn

        app = application(judge, key)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_WAITING,
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(config).run(sockets=[listening])


def bound(host: str, port: int, key: str | None) -> socket.socket:
    """Return a socket that listens at an address, which other machines reach only with a key.

    Raises:
        ValueError: The address is not on loopback, and there is no key; or it cannot be used.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        if key is None and not ipaddress.ip_address(address[0]).is_loopback:
            raise ValueError(
                f"{host} can be reached from other machines, and there is no key: set "
                f"{SERVED_KEY} here and where the judge is asked, or use 127.0.0.1"
            )
        return socket.create_server((str(address[0]), port), family=family)
    except OSError as error:
        raise ValueError(
            f"cannot listen at {host}, port {port}: {error}. Choose another address or port"
        ) from error


def application(judge: Judge, key: str | None) -> Starlette:
    """Return the server's application."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    turn = asyncio.Semaphore(1)  # the judge uses all cores for each request

    def refused(status: int, message: str) -> Response:
        return JSONResponse(
            {"error": {"message": message, "type": "invalid_request_error"}}, status
        )

    def forbidden(request: Request) -> Response | None:
        if "origin" in request.headers:
            return refused(403, "web pages may not ask the judge")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if key is not None and not secrets.compare_digest(given.encode(), key.encode()):
            return refused(401, f"the key is missing or wrong: set {SERVED_KEY}")
        return None

    async def completions(request: Request) -> Response:
        if (no := forbidden(request)) is not None:
            return no
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > _MOST_BYTES:
                    return refused(413, f"the request has more than {_MOST_BYTES:,} bytes")
            asked = _Asked.model_validate_json(bytes(body))
        except ClientDisconnect:
            return Response()
        except ValidationError as error:
            return refused(400, f"the request cannot be read: {_told(error)}")
        if asked.model != SERVED_NAME:
            return refused(404, f"there is no model {asked.model!r}, only {SERVED_NAME!r}")
        messages = [(one.role, one.content) for one in asked.messages]
        async with turn:
            if await request.is_disconnected():  # it need not be judged any more
                return Response()
            try:
                judged = await run_in_threadpool(judge, messages)
            except ValueError as error:
                return refused(400, str(error))
        return JSONResponse(_completion(judged))

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/health", health),
        ]
    )


def _told(error: ValidationError) -> str:
    """Return what is wrong with a request, without its texts."""
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}"
        for one in error.errors(include_input=False, include_url=False, include_context=False)
    )


def _completion(judged: Judged) -> dict[str, Any]:
    """Return a judgement as a chat completion of one token."""
    first = first_token(judged.logprobs)
    return {
        "id": f"chatcmpl-{secrets.token_hex(8)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": SERVED_NAME,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": first["token"]},
                "logprobs": {"content": [first]},
                "finish_reason": "length",
            }
        ],
        "usage": {
            "prompt_tokens": judged.tokens,
            "completion_tokens": 1,
            "total_tokens": judged.tokens + 1,
            "prompt_tokens_details": {"cached_tokens": judged.cached},
        },
    }
