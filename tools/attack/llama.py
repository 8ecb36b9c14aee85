"""Attack LlamaIndex's guarded query and chat engines: responses, streams, metadata and events."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index_instrumentation import root_dispatcher
from pydantic import PrivateAttr
from pydantic_core import to_json

from demur import Abstain, Block
from demur.guard import REFUSAL, UNCHECKED
from fake_llm import ScriptedLLM  # the tests' model, which belongs to no package
from llama_index.evaluation.demur import GuardedChatEngine, GuardedQueryEngine
from llama_index.evaluation.demur.events import (
    DecisionEvent,
    EvaluationEvent,
    OutcomeEvent,
    ReplaceEvent,
)

from .play import Script, judges
from .truth import DOCUMENT, QUESTION, RIGHT, Hung, Tally, marks, tried, wrong

SCRIPTS: dict[str, tuple[str, ...]] = {
    "right": (RIGHT,),
    "wrong, right": (wrong(0), RIGHT),
    "always wrong": (wrong(0), wrong(1), wrong(2)),
    "the same wrong": (wrong(0),),
}
POLICIES: dict[str, Any] = {"default": None, "abstain": Abstain(), "block": Block()}
JUDGES = ("rejects", "rejects claims", "cannot decide", "raises")
QUERIES = ("query", "aquery")
CHATS = ("chat", "achat", "stream_chat", "astream_chat")


class _Custom(CustomQueryEngine):
    """Answer with the least that LlamaIndex requires, and repeat the answer in the metadata."""

    say: Any

    def custom_query(self, query_str: str) -> Any:
        text = self.say()
        return Response(response=text, metadata={"said": text, "kind": "custom"})


def _index(llm: ScriptedLLM) -> VectorStoreIndex:
    return VectorStoreIndex.from_documents(
        [Document(text=DOCUMENT)], embed_model=MockEmbedding(8), llm=llm
    )


def _engine(kind: str, script: tuple[str, ...]) -> Any:
    say = Script(*script)
    llm = ScriptedLLM(script=lambda *_: say())
    if kind == "custom":
        return _Custom(say=say)
    if kind in ("retrieving", "retrieving, streamed"):
        return _index(llm).as_query_engine(llm=llm, streaming="streamed" in kind)
    memory = ChatMemoryBuffer.from_defaults()
    return _index(llm).as_chat_engine(chat_mode=kind, llm=llm, memory=memory)


ENGINES = {
    **dict.fromkeys(("custom", "retrieving", "retrieving, streamed"), QUERIES),
    **dict.fromkeys(("simple", "context", "condense_question", "condense_plus_context"), CHATS),
}
"""The engines, each with the ways to call it."""


class _Client(BaseEventHandler):
    """Keep what a call returns, and demur's events.

    LlamaIndex's own events are left out, because they show what runs inside.
    """

    _text: str = PrivateAttr(default="")
    _things: list[Any] = PrivateAttr(default_factory=list)

    def handle(self, event: BaseEvent, **_: Any) -> None:
        if isinstance(event, (EvaluationEvent, DecisionEvent, ReplaceEvent, OutcomeEvent)):
            self._things += [event, event.model_dump()]
        if isinstance(event, ReplaceEvent):
            self._text = self._text[: event.keep]

    def piece(self, piece: Any) -> None:
        self._text += str(piece)
        self._things.append(str(piece))

    def response(self, response: Any) -> str:
        """Read a response as a logger would, and return its text."""
        fields = to_json(response, serialize_unknown=True, fallback=repr)
        self._things += [response, vars(response), fields, str(response)]
        self._things += [getattr(response, "metadata", None)]
        return str(getattr(response, "response", response))


@dataclass(frozen=True)
class Case:
    """Describe one engine, one guard and one way to call it."""

    engine: str
    call: str
    script: str
    judge: str
    policy: str
    on_error: str
    streaming: Any

    def expected(self) -> str:
        """Return the answer, or the name of the error, that must be the result."""
        texts = SCRIPTS[self.script]
        if texts[0] == RIGHT:
            return RIGHT
        if self.judge in ("cannot decide", "raises"):
            if self.on_error != "closed":
                return "EvaluatorFailed"
            return "AnswerRejected" if self.policy == "block" else UNCHECKED
        if self.policy == "default" and RIGHT in texts:
            return RIGHT
        return "AnswerRejected" if self.policy == "block" else REFUSAL


def attack(count: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Run `count` random combinations."""
    every = [
        Case(engine, call, *rest)
        for engine, calls in ENGINES.items()
        for call in calls
        for rest in product(SCRIPTS, JUDGES, POLICIES, ("closed", "raise"), ("buffer", "sentence"))
    ]
    tallies = {engine: Tally(f"LlamaIndex: {engine}") for engine in ENGINES}
    loop = asyncio.new_event_loop()
    for case in random.Random(seed).sample(every, min(count, len(every))):
        with tallies[case.engine] as tally:
            _try(case, tally, loop, guarded)
    loop.close()
    yield from tallies.values()


def _try(case: Case, tally: Tally, loop: asyncio.AbstractEventLoop, guarded: bool) -> None:
    client = _Client()
    engine = _engine(case.engine, SCRIPTS[case.script])
    if guarded:
        build: Any = GuardedQueryEngine if case.call in QUERIES else GuardedChatEngine
        options = {"on_fail": POLICIES[case.policy], "on_error": case.on_error}
        engine = build(engine, *judges(case.judge), streaming=case.streaming, **options)
    root_dispatcher.add_event_handler(client)
    ask = _aask if case.call.startswith("a") else _ask
    text, error = tried(lambda: ask(engine, case.call, client), loop)
    root_dispatcher.event_handlers.remove(client)
    if isinstance(error, Hung):
        tally.add("hung", case.call, case)
        return
    if case.call in CHATS:
        client._things += list(engine.chat_history)
    for thing in [*client._things, error]:
        if marks(thing):
            tally.add("leaks", f"{case.judge}: {type(thing).__name__} ({case.call})", case)
    if not guarded:
        if SCRIPTS[case.script][0] != RIGHT and not marks(client._things):
            tally.add("wrong", "the attack is blind", case)
        return
    wanted = case.expected()
    got = type(error).__name__ if error else text
    if got != wanted:
        tally.add("wrong", f"{case.call}, {case.judge}", f"{got!r}, not {wanted!r} {error}: {case}")
    if not error and client._text and client._text != text:
        tally.add("wrong", f"{case.call}, the stream", f"{client._text!r}, not {text!r}: {case}")


def _ask(engine: Any, call: str, client: _Client) -> str:
    response = getattr(engine, call)(QUESTION)
    for piece in response.response_gen if _streams(response) else ():
        client.piece(piece)
    final = response.get_response() if hasattr(response, "get_response") else response
    client.response(response)
    return client.response(final)


async def _aask(engine: Any, call: str, client: _Client) -> str:
    response = await getattr(engine, call)(QUESTION)
    if _streams(response):
        async for piece in response.async_response_gen():
            client.piece(piece)
    final = response
    if hasattr(response, "get_response"):
        final = response.get_response()
        final = await final if asyncio.iscoroutine(final) else final
    client.response(response)
    return client.response(final)


def _streams(response: Any) -> bool:
    # A response of a chat that is not streamed also has the methods of a stream.
    return "Stream" in type(response).__name__
