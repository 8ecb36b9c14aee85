"""Attack with one answer in many chunkings, and check what a client has at every moment."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import AddableDict

from demur import Abstain, Guard
from demur.guard import REFUSAL, REPLACE

from .listening import GIVEN
from .play import Judge
from .truth import MARKS, Hung, Tally, is_wrong, marks, tried

_GOOD = (
    "The tower is 84 metres tall.",
    "Dr. E. Holm opened it on 3. May 1911 at 10.30 a.m.",
    "It costs $3.50 (or less!).",
    "“It stands,” she said. ”Indeed.”",
    "Cafe\u0301 Amber is nai\u0308ve about Z\u0351\u036b\u0343algo.",
    "塔高八十四米。它在隆德。",
    "1. 2. 3. 4.",
    "- ...",
    "👩‍👩‍👧 🇸🇪 came!",
    "| metre | 84 |\n|---|---|",
    "מגדל הענבר.",
    "no full stop",
    "a",
    "…?!",
    "\u200b\ufeff",
)
"""Right sentences, and texts that only look like sentences."""
_BAD = (
    "It burned down in {}.",
    "{}",
    "See {}. 4, p. 7.",
    "e\u0301{}\u0301!",
    "{}!",
    "- {}",
    "The {} wrote\u2028it.",
)
_BETWEEN = (" ", "  ", "\n", "\n\n", "\r\n", "\t", "", " \u00a0", "\n- ", "\n1. ")

Chunks = Callable[[list[str]], list[Any]]


def _cumulative(texts: list[str]) -> list[Any]:
    """Return plain mappings, each of which replaces the one before, as parsers yield them."""
    return [{"answer": "".join(texts[: at + 1])} for at in range(len(texts))]


def _with_context(texts: list[str]) -> list[Any]:
    context = AddableDict(context=["The tower."])
    return [context, *(AddableDict(answer=one) for one in texts), AddableDict(cost=1)]


FORMS: dict[str, Chunks] = {
    "strings": list,
    "messages": lambda texts: [AIMessageChunk(one, id="m") for one in texts],
    "messages in blocks": lambda texts: [
        AIMessageChunk([{"type": "text", "text": one, "index": 0}], id="m") for one in texts
    ],
    "mappings that add up": lambda texts: [AddableDict(answer=one) for one in texts],
    "mappings with contexts": _with_context,
    "mappings of messages": lambda texts: [
        AddableDict(answer=AIMessageChunk(one, id="m")) for one in texts
    ],
    "mappings that do not add up": _cumulative,
}


class _Spoken(Runnable[Any, Any]):
    """Stream each run in chunks, or return it whole if the chain is invoked."""

    def __init__(self, form: str, *runs: list[str]) -> None:
        self.form, self.runs, self.run = form, runs, 0

    def _next(self) -> list[str]:
        texts = self.runs[min(self.run, len(self.runs) - 1)]
        self.run += 1
        return texts

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        text = "".join(self._next())
        if self.form == "strings":
            return text
        if self.form.startswith("messages"):
            return AIMessage(text, id="m")
        value = AIMessage(text, id="m") if self.form == "mappings of messages" else text
        extra = {"context": ["The tower."], "cost": 1} if "contexts" in self.form else {}
        return {"answer": value, **extra}

    def stream(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Iterator[Any]:
        yield from FORMS[self.form](self._next())

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[Any]:
        for chunk in FORMS[self.form](self._next()):
            await asyncio.sleep(0)
            yield chunk


class _Client(BaseCallbackHandler):
    """Follow the rule for clients: append each chunk's text, and cut at `demur.replace`."""

    run_inline = True

    def __init__(self) -> None:
        self.text = ""
        self.seen: set[int] = set()
        """The marks that were visible at any moment."""

    def take(self, chunk: Any) -> None:
        self.text += text_of(chunk)
        self.seen |= marks(chunk, self.text)

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        self.seen |= marks(data)
        if name == REPLACE:
            self.text = self.text[: data["keep"]]


def text_of(value: Any) -> str:
    """Return the answer's text."""
    if isinstance(value, Mapping):
        value = value.get("answer", "")
    return str(value.text) if isinstance(value, BaseMessage) else str(value)


def attack(count: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Run `count` answers, each cut into random chunks, some sync and some async."""
    draw, loop = random.Random(seed), asyncio.new_event_loop()
    tallies = {form: Tally(f"chunks: {form}", "answers") for form in FORMS}
    for number in range(count):
        form = list(FORMS)[number % len(FORMS)]
        runs = [_run(draw) for _ in range(2)]
        policy = draw.choice((None, Abstain()))
        with tallies[form] as tally:
            _try(form, runs, policy, draw.random() < 0.5, tally, guarded, loop)
    loop.close()
    yield from tallies.values()
    if guarded:
        yield _growth(count)


def _run(draw: random.Random) -> list[str]:
    """Return a random answer in chunks; half of the answers must be rejected."""
    sentences = draw.choices(_GOOD, k=draw.randint(0, 6))
    for _ in range(draw.choice((0, 0, 1, 2))):
        bad = draw.choice(_BAD).format(draw.choice(MARKS))
        sentences.insert(draw.randint(0, len(sentences)), bad)
    text = "".join(one + draw.choice(_BETWEEN) for one in sentences)
    size = draw.choice((1, 3, 12, 1000))
    chunks, at = [], 0
    while at < len(text):
        length = draw.randint(0, size)  # a chunk may be empty
        chunks.append(text[at : at + length])
        at += length
    return chunks or [""]


def _try(
    form: str,
    runs: list[list[str]],
    policy: Any,
    in_loop: bool,
    tally: Tally,
    guarded: bool,
    loop: asyncio.AbstractEventLoop,
) -> None:
    example = f"{runs}, on_fail={policy}, {'async' if in_loop else 'sync'}"
    texts = ["".join(run) for run in runs]
    right = [text for text in texts[: 1 if policy else 2] if not is_wrong(text)]
    wanted = right[0] if right else REFUSAL
    client = _Client()
    guards = [_guard(form, runs, policy) for _ in range(2)]
    whole, error = tried(lambda: text_of(guards[0].invoke(GIVEN)) if guarded else "", loop)
    if error is None:
        read = _aread if in_loop else _read
        stream = guards[1] if guarded else _Spoken(form, *runs)
        _, error = tried(lambda: read(stream, client), loop)
    if isinstance(error, Hung):
        tally.add("hung", "a stream", example)
        return
    if error is not None:
        tally.add("wrong", f"{type(error).__name__} is raised", f"{error} {example}")
        return
    if client.seen:
        tally.add("leaks", "in a stream", example)
    if not guarded:
        if is_wrong(texts[0]) and not client.seen:
            tally.add("wrong", "the attack is blind", example)
        return
    if whole != wanted:
        tally.add("wrong", "what invoke returns", f"{whole!r}, not {wanted!r}: {example}")
    if client.text != whole:
        tally.add("wrong", "what a client has", f"{client.text!r}, not {whole!r}: {example}")


def _read(stream: Runnable[Any, Any], client: _Client) -> None:
    for chunk in stream.stream(GIVEN, {"callbacks": [client]}):
        client.take(chunk)


async def _aread(stream: Runnable[Any, Any], client: _Client) -> None:
    async for chunk in stream.astream(GIVEN, {"callbacks": [client]}):
        client.take(chunk)


def _growth(count: int) -> Tally:
    """Check that the time of an answer grows no faster than its length, without sentence ends."""
    tally, length = Tally("chunks: long answers without letters", "answers"), min(count, 1000)
    for piece in ("1. ", "- ", "...", "42 ", "\n", "| 8 "):
        with tally:
            once, longer = (_cpu(piece, size) for size in (length, 4 * length))
            if longer > 8 * once + 0.05:
                text = f"{length} x {piece!r} {once:.2f} s, {4 * length} x {longer:.2f} s"
                tally.add("wrong", "more than linear", text)
    return tally


def _cpu(piece: str, size: int) -> float:
    guard = _guard("strings", [[piece] * size], None)
    began = time.process_time()
    list(guard.stream(GIVEN))
    return time.process_time() - began


def _guard(form: str, runs: list[list[str]], policy: Any) -> Guard[Any, Any]:
    chain = _Spoken(form, *runs)
    return Guard(chain, Judge(), streaming="sentence", on_fail=policy, contexts=lambda _: [])
