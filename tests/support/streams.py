"""Provide scripted chains that stream, judges of sentences, and a client.

The client keeps to the contract of `demur.guard.streams`.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.utils import AddableDict
from pydantic import Field

from demur import Evaluation, Guard, Sample
from demur.evaluators import Evaluator
from demur.guard import REPLACE
from demur.runtime import RunnableCall, Steps, ask_all
from demur.shapes import added
from support.waiting import await_, wait


def by_words(text: str) -> list[str]:
    """Split a text into the chunks that a model would give."""
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


def under(key: str, text: str) -> list[AddableDict]:
    """Split a text into the chunks of a chain that gives a mapping with the text under `key`."""
    return [AddableDict({key: word}) for word in by_words(text)]


class Telling(Runnable[Any, Any]):
    """Give the runs in order, the last one again and again, each chunk once `hold` allows it."""

    def __init__(self, *runs: Sequence[Any] | str) -> None:
        self.runs = [by_words(run) if isinstance(run, str) else list(run) for run in runs]
        self.inputs: list[Any] = []
        self.told: list[Any] = []
        """The chunks that streams have given."""
        self.under_way = 0
        """The number of streams that have not ended or been closed."""
        self.hold: Callable[[Any], threading.Event | None] = lambda chunk: None
        """A function that gives the event to wait for before a chunk is given."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return reduce(added, self._next(input))

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        run = self._next(input)
        self.under_way += 1
        try:
            for chunk in run:
                if (event := self.hold(chunk)) is not None:
                    wait(event)
                yield self._tell(chunk)
        finally:
            self.under_way -= 1

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        run = self._next(input)
        self.under_way += 1
        try:
            for chunk in run:
                await asyncio.sleep(0)
                if (event := self.hold(chunk)) is not None:
                    await await_(event)
                yield self._tell(chunk)
        finally:
            self.under_way -= 1

    def _next(self, input: Any) -> list[Any]:
        self.inputs.append(input)
        return self.runs[min(len(self.inputs), len(self.runs)) - 1]

    def _tell(self, chunk: Any) -> Any:
        if isinstance(chunk, Exception):
            raise chunk
        self.told.append(chunk)
        return chunk


def not_bad(sample: Sample) -> bool | None:
    """Reject an answer with "bad" in it, and be undecided about an answer with "odd" in it."""
    return None if "odd" in sample.answer else "bad" not in sample.answer


class ByClaims(Evaluator):
    """Judge sentences one by one."""

    passes: Callable[[Sample], bool | None] = not_bad
    """A function that says whether a sample passes; None: it cannot decide."""
    hold: Callable[[str], threading.Event | None] = lambda answer: None
    """A function that gives the event to wait for before an answer is judged."""
    seen: list[Sample] = Field(default_factory=list)

    @property
    def claim_level(self) -> bool:
        return True

    @property
    def answers(self) -> list[str]:
        return [sample.answer for sample in self.seen]

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        self.seen.append(sample)
        looking = RunnableLambda(self._look, self._alook)
        (outcome,) = yield from ask_all([RunnableCall(looking, sample, "looking")])
        if outcome.error is not None or outcome.value is None:
            return Evaluation(name="judge", error=outcome.error or "it cannot be told")
        why = "" if outcome.value else f"{sample.answer} is bad"
        return Evaluation(name="judge", passed=outcome.value, explanation=why)

    def _look(self, sample: Sample) -> bool | None:
        if (event := self.hold(sample.answer)) is not None:
            wait(event)
        return self.passes(sample)

    async def _alook(self, sample: Sample) -> bool | None:
        if (event := self.hold(sample.answer)) is not None:
            await await_(event)
        return self.passes(sample)


GOOD = "One is good. Two is good too.  Three is as good.\n"
DOCUMENTS = [Document("One, two and three.")]


def by_sentences(text: str) -> list[str]:
    """Split a text as the guard releases it: white space belongs to the sentence that follows."""
    return re.findall(r"\s*[^.]*\.|\s+$", text)


def no_contexts(output: Any) -> list[Document]:
    """Return no contexts, so that the guard need not wait for any."""
    return []


def guard(chain: Any, judge: Any = None, **options: Any) -> Guard[Any, Any]:
    """Return a guard that streams sentence by sentence."""
    options = {"streaming": "sentence", "contexts": no_contexts, **options}
    return Guard(chain, judge or ByClaims(), **options)


class Client(BaseCallbackHandler):
    """Read a stream as the contract says; the streamed answer is in `text` and `others`."""

    run_inline = True

    def __init__(self) -> None:
        self.text = ""
        self.others = AddableDict()
        self.chunks: list[Any] = []
        self.replaced: list[Mapping[str, Any]] = []
        self.on_text: Callable[[str], None] = lambda text: None
        """A function that gets the whole text so far whenever it grows."""

    @property
    def texts(self) -> list[str]:
        """Return the text of each chunk."""
        return [text_in(chunk) for chunk in self.chunks]

    @property
    def received(self) -> str:
        """Return all text that ever came, also text that was replaced later."""
        return "".join(self.texts)

    @property
    def total(self) -> Any:
        """Return the sum of the chunks."""
        return reduce(added, self.chunks)

    def read(self, runnable: Runnable[Any, Any], given: Any, mode: str = "sync") -> Client:
        """Read a stream to its end, sync or async, and return this client."""
        if mode == "sync":
            for chunk in runnable.stream(given, {"callbacks": [self]}):
                self.take(chunk)
            return self
        asyncio.run(self.aread(runnable, given))
        return self

    async def aread(self, runnable: Runnable[Any, Any], given: Any) -> Client:
        async for chunk in runnable.astream(given, {"callbacks": [self]}):
            self.take(chunk)
        return self

    def take(self, chunk: Any) -> None:
        self.chunks.append(chunk)
        self.text += text_in(chunk)
        if isinstance(chunk, dict):
            for key, value in chunk.items():
                if key != "answer":
                    self.others = added(self.others, AddableDict({key: value}))
        self.on_text(self.text)

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        if name == REPLACE:
            self.replaced.append(data)
            self.text = self.text[: data["keep"]]
            for key in data["keys"]:
                del self.others[key]


def text_in(chunk: Any) -> str:
    """Return the answer's text in a chunk."""
    if isinstance(chunk, dict):
        chunk = chunk.get("answer", "")
    return str(chunk.text) if isinstance(chunk, BaseMessage) else str(chunk)
