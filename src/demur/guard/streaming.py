"""Streaming by sentences: each leaves when it was accepted, while later ones are being generated.

What a client is told: the text T is empty at first. A chunk with text appends to T. The event
`demur.replace` cuts T to its first `keep` characters, and takes back the values of other keys under
`keys`. At the end T is the answer that `invoke` would have returned.

`StreamedAnswer` knows what to judge and what to let go, and waits for nothing; `stream` and
`astream` do the waiting, in threads and in tasks. Whatever happens comes through one inbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from demur.errors import DemurError
from demur.guard.attempts import Answered, accepts
from demur.guard.chunks import Form, added, last_chunks, other_keys, read_chunk
from demur.guard.events import REPLACE, Announcement
from demur.guard.loop import GuardedCall
from demur.guard.recovery import Annotate
from demur.guard.shapes import CONTEXT_KEYS, find_answer, find_contexts
from demur.guard.trace import Guarded
from demur.guard.widen import while_widening
from demur.models.calls import Steps, adrive, drive
from demur.models.scope import within_scope
from demur.models.threads import in_background
from demur.schema import Evaluation, Sample
from demur.text import sentences, words

Event: TypeAlias = Callable[[], None]
"""Something that happened, to be told to the streamed answer."""

_AT_ONCE = 16
"""Sentences that are judged at a time."""
_BREAK = "\n\n"
"""Between what was streamed and what corrects it, for clients that do not know the event."""


class StreamedAnswer:
    """The first answer of a guarded call, as it is generated, judged and let go by sentences."""

    def __init__(self, call: GuardedCall) -> None:
        """Nothing has happened yet."""
        self.call = call
        self.chain = call.chain_call(call.input)
        self.over = False
        """Whether what still happens is of no use to anyone."""
        self._reader = call.plan.answer
        # A best effort is the whole answer, so one may be needed after a sentence has failed.
        self._cuts = not any(isinstance(one, Annotate) for one in call.plan.policy.values())
        self._output: Any = None
        self._text = ""
        self._form: Form | None = None
        self._whole = False
        """Whether the answer can only be judged as a whole, when it is there."""
        self._answered: Answered | None = None
        """Set when the chain has ended."""
        self._spans: list[tuple[int, int]] = []
        """The sentences that are complete."""
        self._asked = 0
        self._found: dict[int, tuple[Evaluation, ...]] = {}
        self._gone = 0
        """How many sentences have left."""
        self._leaving: list[Any] = []
        """Chunks without text that are to leave."""
        self._waiting: list[AddableDict] = []
        """Chunks without text that leave when there is an answer."""
        self._others = AddableDict()
        """The other keys that have left."""

    # --- What happens ------------------------------------------------------------------------

    def feed(self, chunk: Any) -> None:
        """The chain gave a chunk."""
        self._output = chunk if self._output is None else added(self._output, chunk)
        part = None if self._whole else read_chunk(chunk, self._reader)
        if part is None:
            self._whole = True
            return
        if part.others:
            self._waiting.append(part.others)
        if part.form is not None:
            self._form = self._form or part.form
        if self._form is not None or set(part.others) <= set(CONTEXT_KEYS):
            self._leaving += self._waiting
            self._waiting.clear()
        if part.text:
            self._text += part.text
            self._cut(ended=False)

    def end(self) -> None:
        """The chain has ended."""
        self._answered = self.call.answered(self.chain, self._output, "chain")
        if self._answered.text != self._text or self._answered.abstained:
            self._whole = True
        else:
            self._cut(ended=True)

    def judged(self, at: int, found: tuple[Evaluation, ...]) -> None:
        """A sentence was judged."""
        self._found[at] = found

    # --- What is to be done --------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether nothing more can leave before the call is finished."""
        if self._cuts and not self._whole and not all(map(self._accepted, self._found)):
            return True
        return self._answered is not None and (self._whole or len(self._found) == len(self._spans))

    def to_judge(self) -> list[tuple[int, Sample]]:
        """The sentences whose judgement can begin, each once, with their numbers."""
        last = min(len(self._spans), len(self._found) + _AT_ONCE)
        if self._whole or self._asked >= last or (contexts := self._contexts()) is None:
            return []
        numbers = range(self._asked, last)
        self._asked = last
        return [(at, self._sample(at, contexts)) for at in numbers]

    def judge(self, sample: Sample) -> Steps[tuple[Evaluation, ...]]:
        """Judge a sentence."""
        found = yield from self.call.evaluate(sample)
        if not self.over:
            yield from self.call.tell(found)
        return found

    def leaving(self) -> Iterator[Any]:
        """The chunks that can leave, each once."""
        for others in self._leaving:
            self._others = self._others + others
            yield others
        self._leaving.clear()
        while self._form is not None and self._accepted(self._gone):
            start, end = self._sent, self._spans[self._gone][1]
            self._gone += 1
            yield self._form.chunk(self._text[start:end])

    # --- The end -------------------------------------------------------------------------------

    def finish(self) -> Steps[list[Any]]:
        """Do what is done about the answer.

        Returns:
            The chunks that are left, and the announcements that go between them.
        """
        answered = self._answered or self.call.answered(self.chain, self._output, "chain")
        if self._whole or not self._spans:
            yield from self.call.judge(answered)
        else:
            self.call.record(answered, [*self._evaluations()])
        return list(self._rest((yield from self.call.finish())))

    def _rest(self, guarded: Guarded[Any]) -> Iterator[Any]:
        output = guarded.output
        if not self._sent and not self._others:
            yield output
            return
        text = find_answer(output, self._reader)
        ends = [0, *(end for _, end in self._spans[: self._gone])]
        keep = max(end for end in ends if text.startswith(self._text[:end]))
        others = other_keys(output, self._reader)
        stale = [
            key
            for key, value in self._others.items()
            if key not in others or not _same(value, others[key])
        ]
        if keep < self._sent and self._form is not None:
            yield self._form.chunk(_BREAK)
        if keep < self._sent or stale:
            yield Announcement(((REPLACE, {"keep": keep, "keys": stale}),))
        fresh = {k: v for k, v in others.items() if k not in self._others or k in stale}
        yield from last_chunks(output, self._reader, self._form, text[keep:], fresh)

    # --- Sentences -----------------------------------------------------------------------------

    def _cut(self, ended: bool) -> None:
        """Find the sentences that are complete.

        One is when a whole word of the next is there: "Dr." goes on with a name, "3." with digits.
        One without a letter, such as the number of a list's item, is the next one's.
        """
        start = self._spans[-1][1] if self._spans else 0
        found = sentences(rest := self._text[start:])
        if not ended and found:
            begun = rest[found[-1][0] : found[-1][1]]
            word = next(words(begun), None)
            complete = word is not None and word[2] < len(begun)
            found = found[:-1] if complete else found[:-2]
        begin: int | None = None
        for at, (first, end) in enumerate(found):
            begin = first if begin is None else begin
            if any(map(str.isalpha, rest[first:end])) or (ended and at == len(found) - 1):
                self._spans.append((start + begin, start + end))
                begin = None

    def _sample(self, at: int, contexts: Sequence[Document]) -> Sample:
        start, end = self._spans[at]
        return Sample(
            question=self.call.question,
            answer=self._text[start:end],
            contexts=tuple(contexts),
            preceding=self._text[:start],
        )

    def _contexts(self) -> Sequence[Document] | None:
        """What sentences are held against; None where that is not known yet."""
        if self._answered is not None:
            return self._answered.contexts
        if self.chain.capture.refusals:
            return None  # it may be one, and those are not judged
        reader = self.call.plan.contexts
        try:
            found = find_contexts(
                self.chain.input, self._output, self.chain.capture.documents, reader
            )
        except DemurError:
            return None
        except Exception:  # a function that is given half an output
            return None
        return found if found or reader is not None else None

    def _accepted(self, at: int) -> bool:
        lets_open = self.call.plan.on_error == "open"
        return at in self._found and all(
            accepts(one) or (lets_open and one.undetermined) for one in self._found[at]
        )

    def _evaluations(self) -> Iterator[Evaluation]:
        for at in sorted(self._found):
            for evaluation in self._found[at]:
                yield _moved(evaluation, self._spans[at][0])

    @property
    def _sent(self) -> int:
        """How many characters have left."""
        return self._spans[self._gone - 1][1] if self._gone else 0


def _moved(evaluation: Evaluation, by: int) -> Evaluation:
    """An evaluation of a sentence, with places in the whole answer."""
    claims = tuple(
        claim
        if claim.span is None
        else claim.model_copy(
            update={
                "span": claim.span.model_copy(
                    update={"start": claim.span.start + by, "end": claim.span.end + by}
                )
            }
        )
        for claim in evaluation.claims
    )
    return evaluation.model_copy(update={"claims": claims})


def _same(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # arrays and tables compare into something that is no truth
        return False


# --- In threads ----------------------------------------------------------------------------------


def stream(call: GuardedCall, config: RunnableConfig) -> Iterator[Any]:
    """Stream a guarded call. The chain, and the evaluators, run in other threads."""
    streamed = StreamedAnswer(call)
    inbox: SimpleQueue[Event] = SimpleQueue()
    in_background(partial(_read, streamed, config, inbox))
    try:
        while not streamed.settled:
            inbox.get()()
            for at, sample in streamed.to_judge():
                in_background(partial(_judge, streamed, at, sample, config, inbox))
            yield from streamed.leaving()
        streamed.over = True
        with within_scope(call.scope):
            rest, _ = drive(streamed.finish(), config, None)
        for item in rest:
            if isinstance(item, Announcement):
                item.run(config, None)
            else:
                yield item
    finally:
        streamed.over = True


def _read(streamed: StreamedAnswer, config: RunnableConfig, inbox: SimpleQueue[Event]) -> None:
    chain = streamed.chain
    try:
        with within_scope(None), while_widening(chain.widening):
            chunks = chain.chain.stream(chain.input, chain.config(config), **chain.kwargs)
            for chunk in chunks:
                if streamed.over:
                    if isinstance(chunks, Generator):
                        chunks.close()
                    return
                inbox.put(partial(streamed.feed, chunk))
        inbox.put(streamed.end)
    except BaseException as error:
        inbox.put(partial(_throw, error))


def _judge(
    streamed: StreamedAnswer,
    at: int,
    sample: Sample,
    config: RunnableConfig,
    inbox: SimpleQueue[Event],
) -> None:
    if streamed.over:
        return
    try:
        with within_scope(streamed.call.scope):
            found, _ = drive(streamed.judge(sample), config, None)
        inbox.put(partial(streamed.judged, at, found))
    except BaseException as error:
        inbox.put(partial(_throw, error))


def _throw(error: BaseException) -> None:
    raise error


# --- In tasks ------------------------------------------------------------------------------------


async def astream(call: GuardedCall, config: RunnableConfig) -> AsyncGenerator[Any, None]:
    """As `stream`, with tasks of the running loop. None of them is left when it ends."""
    streamed = StreamedAnswer(call)
    inbox: asyncio.Queue[Event] = asyncio.Queue()
    tasks = {_begin(partial(_aread, streamed, config, inbox), inbox)}
    try:
        while not streamed.settled:
            (await inbox.get())()
            for at, sample in streamed.to_judge():
                judging = partial(_ajudge, streamed, at, sample, config, inbox)
                tasks.add(_begin(judging, inbox))
            for chunk in streamed.leaving():
                yield chunk
        await _stop(tasks)
        with within_scope(call.scope):
            rest, _ = await adrive(streamed.finish(), config, None)
        for item in rest:
            if isinstance(item, Announcement):
                await item.arun(config, None)
            else:
                yield item
    finally:
        await _stop(tasks)


async def _aread(
    streamed: StreamedAnswer, config: RunnableConfig, inbox: asyncio.Queue[Event]
) -> None:
    chain = streamed.chain
    with within_scope(None), while_widening(chain.widening):
        chunks = chain.chain.astream(chain.input, chain.config(config), **chain.kwargs)
        async for chunk in chunks:
            inbox.put_nowait(partial(streamed.feed, chunk))
    inbox.put_nowait(streamed.end)


async def _ajudge(
    streamed: StreamedAnswer,
    at: int,
    sample: Sample,
    config: RunnableConfig,
    inbox: asyncio.Queue[Event],
) -> None:
    with within_scope(streamed.call.scope):
        found, _ = await adrive(streamed.judge(sample), config, None)
    inbox.put_nowait(partial(streamed.judged, at, found))


def _begin(
    work: Callable[[], Coroutine[Any, Any, None]], inbox: asyncio.Queue[Event]
) -> asyncio.Task[None]:
    """Begin a task; what it raises comes through the inbox."""

    async def watched() -> None:
        try:
            await work()
        except BaseException as error:
            inbox.put_nowait(partial(_throw, error))

    return asyncio.create_task(watched())


async def _stop(tasks: set[asyncio.Task[None]]) -> None:
    """Have tasks end, and wait until they have."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    tasks.clear()
