"""Serve OpenAI's chat protocol to every peer, and count what the peers ask.

    python -m peers.speed.server --latency 0.2

Every request takes the same time. The line of JSON (see `bench.serving`) also names the tokenizer.
`peers.speed.replies` makes the replies. Beside `POST /v1/chat/completions`:

- `POST /reset` with `{"share": 0.2, "seed": 0}` sets the counts to zero, and the share of the
  requests to spoil from now on. They are spoiled with those faults of `python -m tools.faults` that
  need no patience (`SPOILERS`).
- `GET /counts` returns the counts since then (`Counts`).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from bench.measuring import arguments
from bench.serving import (
    Connection,
    completion,
    http,
    prompt_tokens,
    serve,
    text_of,
    tokenizer,
)

from peers.speed.replies import UnknownPromptError, reply_to
from support.faults import FAULTS, Faulty  # from the tests, not a package
from support.openai_server import Answer

SPOILERS = tuple(name for name in FAULTS if name != "hang")
"""What happens to a spoiled request. No request hangs, because each peer would wait until its own
timeout, between 30 seconds and ten minutes, and that says little about the peer."""

Count = Callable[[str], int]


@dataclass
class Counts:
    """Count what the server has seen since it was last reset."""

    requests: int = 0
    prompt_tokens: int = 0
    """The tokens of the messages, and of the schemas that come with them."""
    completion_tokens: int = 0
    """The tokens of the replies that could be read."""
    under_way: int = 0
    """The requests of these that have no answer yet."""
    most_at_once: int = 0
    """The most requests that were under way at a time."""
    spoiled: int = 0
    latest_ms: float = 0.0
    """The longest delay of a reply in milliseconds, which is what the server itself adds."""
    unknown: int = 0
    """The requests that are from no peer, which get status 400."""

    def end(self, late: float) -> None:
        """Note that a request got its answer, `late` seconds after it was due."""
        self.under_way -= 1
        self.latest_ms = max(self.latest_ms, 1000 * late)


class Script:
    """Make the reply to each request, and count the request."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known: dict[bytes, tuple[dict[str, Any], Answer, int, int]] = {}
        self.reset(0.0, 0)

    def reset(self, share: float, seed: int) -> None:
        """Set the counts to zero, and spoil this share of the requests, in [0, 1]."""
        self.counts = Counts()
        self._faulty = Faulty(
            lambda request, number: request["right"], SPOILERS, share=share, seed=seed
        )

    def begin(self, body: bytes) -> tuple[Answer, bytes]:
        """Return the answer to a request that has arrived, and its body."""
        self.counts.under_way += 1
        self.counts.most_at_once = max(self.counts.most_at_once, self.counts.under_way)
        self.counts.requests += 1
        try:
            request, right, read, written = self._right(body)
        except UnknownPromptError as error:
            self.counts.unknown += 1
            return self._refused(str(error))
        self.counts.prompt_tokens += read
        answer = self._faulty({"messages": request["messages"], "right": right}, 0)
        self.counts.spoiled = self._faulty.met.total()
        if answer.text is not None and answer.status == 200 and answer.body is None:
            self.counts.completion_tokens += written
        return answer, _body(answer, request, read, written)

    def _right(self, body: bytes) -> tuple[dict[str, Any], Answer, int, int]:
        # A repeated request costs no CPU, so that no reply is late.
        if body not in self._known:
            request = json.loads(body)
            reply = reply_to(request)
            read = prompt_tokens(map(text_of, request["messages"]), self._count)
            read += self._count(_schemas(request))
            written = self._count(reply) * (request.get("n") or 1)
            self._known[body] = request, Answer(reply), read, written
        return self._known[body]

    def _refused(self, why: str) -> tuple[Answer, bytes]:
        error = {"error": {"message": why, "code": "unknown_prompt"}}
        return Answer(status=400), json.dumps(error).encode()


def _schemas(request: dict[str, Any]) -> str:
    """Return the schemas of tools and of the reply, which a model reads as it reads messages."""
    asked = [request[name] for name in ("tools", "response_format") if request.get(name)]
    return json.dumps(asked) if asked else ""


def _body(answer: Answer, request: dict[str, Any], read: int, written: int) -> bytes:
    if answer.body is not None:
        return answer.body
    if answer.status != 200:
        return json.dumps({"error": {"message": "told to", "code": None}}).encode()
    of_choice = {"finish_reason": answer.finish_reason, "logprobs": None}
    times, said = request.get("n") or 1, answer.text
    return json.dumps(
        completion(request["model"], said, read, written, times, **of_choice)
    ).encode()


class _Answering(Connection):
    """Answer as the script says, after the latency."""

    def __init__(self, script: Script, latency: float) -> None:
        self._script = script
        self._latency = latency

    def asked(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /counts "):
            self._send(Answer(), json.dumps(asdict(self._script.counts)).encode())
        elif head.startswith(b"POST /reset "):
            self._script.reset(**json.loads(body))
            self._send(Answer(), b"{}")
        else:
            loop = asyncio.get_running_loop()
            due = loop.time() + self._latency
            answer, reply = self._script.begin(body)
            counts = self._script.counts  # its own ones, if they are reset before it is answered
            loop.call_at(due, partial(self._answer, due, counts, answer, reply))

    def _answer(self, due: float, counts: Counts, answer: Answer, reply: bytes) -> None:
        counts.end(asyncio.get_running_loop().time() - due)
        if answer.cut:
            self.close()
        else:
            self._send(answer, reply)

    def _send(self, answer: Answer, reply: bytes) -> None:
        whole = http(answer.status, reply, **answer.headers)
        lacking = len(reply) - int(answer.sent * len(reply))
        self.write(whole[: len(whole) - lacking])
        if answer.sent < 1:
            self.close()


async def _serve(latency: float) -> None:
    count, name = tokenizer()
    script = Script(count)
    await serve(lambda: _Answering(script, latency), tokens=name)


def main() -> None:
    """Serve until the process is ended."""
    parser = arguments(__doc__)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    asyncio.run(_serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
