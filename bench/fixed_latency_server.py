"""Serve OpenAI's chat protocol, and take the same time for every request.

    python -m bench.fixed_latency_server --latency 0.2

The line of JSON (see `bench.serving`) also names the tokenizer. The tags in a prompt, or its last
line, decide the reply. The claims are taken from the answer, and every claim is supported, also in
the log-probabilities if a request asks for them. A prompt without tags is answered with ten
sentences, which take `--word` seconds more for each word, streamed or not.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.measuring import arguments
from bench.serving import Connection, completion, http, prompt_tokens, serve, tagged, tokenizer


def main() -> None:
    """Serve until the process is ended."""
    parser = arguments(__doc__)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per request")
    parser.add_argument("--word", type=float, default=0.02, help="seconds per word of an answer")
    options = parser.parse_args()
    asyncio.run(_serve(options.latency, options.word))


async def _serve(latency: float, word: float) -> None:
    count, counted_with = tokenizer()
    replies: dict[bytes, list[bytes]] = {}

    def respond(request: bytes) -> list[bytes]:
        # A repeated request costs no CPU, so that no reply is late.
        if request not in replies:
            replies[request] = _parts(json.loads(request), count)
        return replies[request]

    await serve(lambda: _Answering(latency, word, respond), tokens=counted_with)


class _Answering(Connection):
    """Send a reply when it is due, part by part."""

    def __init__(
        self, latency: float, word: float, respond: Callable[[bytes], list[bytes]]
    ) -> None:
        self._latency = latency
        self._word = word
        self._respond = respond

    def asked(self, head: bytes, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._latency
        for at, part in enumerate(self._respond(body)):
            loop.call_at(due + at * self._word, partial(self.write, part))


def _parts(request: dict[str, Any], count: Callable[[str], int]) -> list[bytes]:
    """Return a response in parts, which are sent one by one: a part for each word of an answer."""
    words = re.findall(r"\s*\S+", _reply_to(request["messages"]))
    if request.get("stream"):
        return _stream(request, words)
    asks = tagged(request["messages"][-1]["content"])
    return [*[b""] * (0 if asks else len(words) - 1), _response(request, count)]


def _stream(request: dict[str, Any], words: list[str]) -> list[bytes]:
    """Return server-sent events in a chunked body."""
    kind = {"object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    deltas: list[dict[str, str]] = [{"content": word} for word in words]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [json.dumps({"id": "chatcmpl-1", **kind, "choices": [one]}) for one in choices]
    sent = [f"data: {event}\n\n".encode() for event in [*events, "[DONE]"]]
    chunks = [b"%x\r\n%b\r\n" % (len(data), data) for data in sent]
    fields = (b"HTTP/1.1 200 OK", b"Content-Type: text/event-stream", b"Transfer-Encoding: chunked")
    head = b"\r\n".join([*fields, b"", b""])
    # The end of the stream is sent with the last word.
    return [head + chunks[0], *chunks[1:-3], b"".join(chunks[-3:]) + b"0\r\n\r\n"]


def _response(request: dict[str, Any], count: Callable[[str], int]) -> bytes:
    texts = [message["content"] for message in request["messages"]]
    reply = _reply_to(request["messages"])
    read = prompt_tokens(texts, count)
    more = {"logprobs": _logprobs(reply)} if request.get("logprobs") else {}
    said = completion(request["model"], reply, read, count(reply), **more)
    return http(200, json.dumps(said).encode())


def _logprobs(reply: str) -> dict[str, Any]:
    """Return the reply as one token, which is more probable than the other labels."""
    labels = dict.fromkeys(("Entailment", "Neutral", "Contradiction"), -9.0) | {reply: -0.01}
    told = [{"token": token, "logprob": value, "bytes": None} for token, value in labels.items()]
    first = next(one for one in told if one["token"] == reply)
    return {"content": [{**first, "top_logprobs": told}], "refusal": None}


def _reply_to(messages: list[dict[str, Any]]) -> str:
    prompt = messages[-1]["content"]
    found = tagged(prompt)
    if "answer" in found:
        triplets = _triplets(found["answer"])
        if '"- "' in messages[0]["content"]:
            return "\n".join(f"- {' '.join(parts)}." for parts in triplets)
        return "\n".join('("{}", "{}", "{}")'.format(*parts) for parts in triplets)
    if "claims" in found:
        numbers = re.findall(r"^\d+(?=\. )", found["claims"], re.MULTILINE)
        return "\n".join(f"{number}. Entailment" for number in numbers)
    if "claim" in found:
        return "Entailment"
    if "passage" in found:
        return _construction(found["passage"], prompt.splitlines()[-1])
    if "requirements" in found:
        return "Entity: the Ostel mill\nPercentage: 100%\nNot met: none"
    if prompt.endswith("The name:"):
        return "the Ostel mill"
    if "question" in found:
        return _of_references(prompt.splitlines()[-1])
    if not found:
        return " ".join(
            f"The {name} mill has {at} floors and was built of grey stone."
            for at, name in enumerate(_MILLS, 2)
        )
    raise ValueError(f"expected a prompt of an evaluator of demur, got: {prompt[:200]}")


def _construction(passage: str, closing: str) -> str:
    """Return the facts of a passage as a question or as a list; its first words are the name."""
    name = " ".join(passage.split()[:3])
    features = [one for one in re.split(r"\.\s+|, and |\.$", passage.replace(name, "It")) if one]
    if closing.endswith("list:"):
        listed = "\n".join(f"{at}. {feature}" for at, feature in enumerate(features, 1))
        return f"Entity: {name}\n{listed}"
    return f"Entity: {name}\nQuestion: Of what is it true that {' and '.join(features)}?"


def _of_references(closing: str) -> str:
    """Return wrong answers with corrected ones, or as many answers as the last line asks for."""
    if closing.startswith("Wrong"):
        sides = ("Wrong Answer: It has {at} rooms.", "Non-Wrong Answer: Its rooms are not {at}.")
        return "\n".join(f"{at}. {side.format(at=at)}" for at in range(1, 26) for side in sides)
    answers = [f"It is the {name} mill." for name in _MILLS]
    wanted = re.match(r"\d+", closing)
    if not wanted:
        return answers[0]
    return "\n".join(f"{at}. {one}" for at, one in enumerate(answers[: int(wanted[0])], 1))


_MILLS = (
    *("Alder", "Brack", "Corran", "Dunmar", "Eskel"),
    *("Farrow", "Garvin", "Hollen", "Istra", "Jorund"),
)


def _triplets(answer: str) -> list[tuple[str, str, str]]:
    """Return a triplet for each clause: its subject, its verb, and the rest.

    The subject is the first words of the clause, with the first clause's subject in place of "It".
    """
    subject = " ".join(answer.split()[:3])
    found = []
    for clause in re.split(r"\.\s+|, and |\.$", answer):
        words = clause.removeprefix(subject).split()
        if words:
            begin = words[0].lower() in ("it", "its")
            verb, rest = words[begin : begin + 2], words[begin + 2 :]
            found.append((subject, " ".join(verb), " ".join(rest)))
    return found


if __name__ == "__main__":
    main()
