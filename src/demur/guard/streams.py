"""Streaming by sentences: each leaves when it was accepted, while later ones are being generated.

What a client is told: the text T is empty at first. A chunk with text appends to T. The event
`demur.replace` cuts T to its first `keep` characters, and takes back the values of other keys under
`keys`. At the end T is the answer that `invoke` would have returned.

`StreamedAnswer` knows what to judge and what to let go, and waits for nothing. The waiting is in
`stream` and `astream`: whatever happens comes through one inbox, as what the streamed answer is to
be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import partial, reduce
from queue import SimpleQueue
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from demur.errors import DemurError
from demur.guard.arguments import GuardArguments
from demur.guard.call import Answered, GuardedCall
from demur.guard.leaving import LeavingText
from demur.guard.recoveries import Annotate, Cite, Strip, fitting
from demur.guard.sentences import Sentences
from demur.guard.trace import REPLACE, Announcement, Guarded
from demur.guard.trimming import failing_claims
from demur.guard.verdicts import accepts
from demur.runtime import Steps, adrive, drive, in_background, take, within_scope
from demur.schema import Claim, Evaluation, Sample, Span
from demur.shapes import (
    Form,
    added,
    alike,
    fits,
    last_chunks,
    others_in,
    read_chunk,
    stays,
    streamed_in,
)

_AT_ONCE = 16
"""Sentences that are judged at a time."""
_BREAK = "\n\n"
"""Between what was streamed and what corrects it, for clients that do not know the event."""


@dataclass(frozen=True)
class Leaving:
    """A chunk leaves."""

    chunk: Any


class StreamedAnswer:
    """The first answer of a guarded call, as it is generated, judged and let go by sentences."""

    def __init__(self, call: GuardedCall) -> None:
        """Nothing has happened yet."""
        self.call = call
        self.chain = call.chain_call(call.input)
        self.over = False
        """Whether what still happens is of no use to anyone."""
        self._reader = call.guard.answer
        recoveries = call.guard.on_fail.values()
        # A best effort is the whole answer, so one may be needed after a sentence has failed.
        self._cuts = not any(isinstance(recovery, Annotate) for recovery in recoveries)
        on_pass = call.guard.on_pass
        self._sent = LeavingText(
            None if on_pass is None else on_pass.form,
            any(isinstance(recovery, Strip) for recovery in recoveries),
        )
        self._blocks = on_pass is not None and on_pass.form == "blocks"
        self._output: Any = None
        self._sentences = Sentences()
        self._form: Form | None = None
        self._whole = False
        """Whether the answer can only be judged as a whole, when it is there."""
        self._answered: Answered | None = None
        """Set when the chain has ended."""
        waits = call.guard.on_abstain == "fail"
        self._silent = set(range(len(call.guard.evaluators))) if waits else set()
        """The evaluators that found nothing to check so far, where no sentence leaves before each
        of them found something."""
        self._asked: list[Sample] = []
        """The sentences whose judgement has begun."""
        self._by_sentence: dict[int, tuple[Evaluation, ...]] = {}
        self._failed = False
        """Whether a sentence was not accepted."""
        self._stripped: set[int] = set()
        """The sentences that are taken out."""
        self._gone = 0
        """How many sentences have left, or were taken out."""
        self._leaving: list[AddableDict] = []
        """Sources and the chain's own input, which leave at once."""
        self._others = AddableDict()
        """The other keys that have left."""

    # --- What happens ------------------------------------------------------------------------

    def feed(self, chunk: Any) -> None:
        """The chain gave a chunk."""
        if isinstance(chunk, list):
            raise DemurError(
                "the chain streams lists, and it cannot be told whether each goes on with the one "
                "before it or takes its place: stream with streaming='buffer'"
            )
        self._output = chunk if self._output is None else added(self._output, chunk)
        part = None if self._whole else read_chunk(chunk, self._reader)
        if part is None or not fits(part.form, self._form):
            self._whole = True
            return
        self._form = self._form or part.form
        # What else stands beside the answer leaves with the verdict on all of it.
        kept, given = self.call.kept, self.call.input
        early = {k: v for k, v in part.others.items() if stays(k, v, given, kept)}
        if early:
            self._leaving.append(AddableDict(early))
        if part.text:
            self._sentences.add(part.text)

    def end(self) -> None:
        """The chain has ended."""
        self._answered = self.call.answered(self.chain, self._output, "chain")
        if self._answered.text != self._text or self._answered.abstained:
            self._whole = True
        else:
            self._sentences.end()

    def judged(self, at: int, evaluations: tuple[Evaluation, ...]) -> None:
        """A sentence was judged."""
        self._by_sentence[at] = evaluations
        failures = {failure for evaluation in evaluations for failure in evaluation.failures}
        recoveries = [*fitting(self.call.guard.on_fail, failures)] if failures else []
        if any(isinstance(recovery, Strip | Cite) for recovery in recoveries):
            self._cuts = False  # what is edited is the whole answer
        if recoveries and isinstance(recoveries[0], Strip) and failing_claims(evaluations):
            self._stripped.add(at)
        elif not self._accepted(at):
            self._failed = True
        elif self._silent:
            self._silent -= {
                i for i, evaluation in enumerate(evaluations) if not evaluation.nothing_to_check
            }

    # --- What is to be done --------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether nothing more can leave before the call is finished."""
        if self._cuts and not self._whole and self._failed:
            return True
        return self._answered is not None and (
            self._whole or len(self._by_sentence) == len(self._spans)
        )

    def to_judge(self) -> list[tuple[int, Sample]]:
        """The sentences whose judgement can begin, each once, with their numbers."""
        last = min(len(self._spans), len(self._by_sentence) + _AT_ONCE)
        if self._whole or self.settled or len(self._asked) >= last:
            return []
        contexts = self._contexts()
        if contexts is None:
            return []
        numbers = range(len(self._asked), last)
        self._asked += (self._sample(at, contexts) for at in numbers)
        return [(at, self._asked[at]) for at in numbers]

    def judge(self, sample: Sample) -> Steps[tuple[Evaluation, ...]]:
        """Judge a sentence."""
        evaluations = yield from self.call.evaluate(sample)
        if not self.over:
            yield from self.call.announce_evaluations(evaluations)
        return evaluations

    def leaving(self) -> Iterator[Any]:
        """The chunks that can leave, each once."""
        for others in self._leaving:
            self._others = added(self._others, others)
            yield others
        self._leaving.clear()
        while self._may_leave and self._form is not None and not self._holds_up(self._gone):
            at, self._gone = self._gone, self._gone + 1
            if at in self._stripped:
                self._sent.skip(self._text, self._spans[at])
                continue
            piece, citations = self._sent.leave(
                self._text, self._spans[at], self._by_sentence[at], self._asked[at].contexts
            )
            if piece:
                yield self._form.chunk(piece, citations if self._blocks else None)

    # --- The end -------------------------------------------------------------------------------

    def finish(self) -> Steps[list[Leaving | Announcement]]:
        """Do what is done about the answer.

        Returns:
            What is left to happen, in its order.
        """
        answered = self._answered or self.call.answered(self.chain, self._output, "chain")
        if self._whole or not self._spans:
            yield from self.call.judge(answered)
        else:
            self.call.record(answered, [*self._evaluations()])
        return list(self._rest((yield from self.call.finish())))

    def _rest(self, guarded: Guarded[Any]) -> Iterator[Leaving | Announcement]:
        output, sent = guarded.output, self._sent.text
        if not sent and not self._others:
            yield Leaving(output)
            return
        text = streamed_in(output, self._form)
        common = _in_common(sent, text)
        keep = max(end for end in self._sent.ends if end <= common)
        others = others_in(output, self._form)
        stale = [
            key
            for key, value in self._others.items()
            if key not in others or not alike(value, others[key])
        ]
        if keep < len(sent) and self._form is not None:
            yield Leaving(self._form.chunk(_BREAK, [] if self._blocks else None))
        if keep < len(sent) or stale:
            yield Announcement(((REPLACE, {"keep": keep, "keys": stale}),))
        fresh = {k: v for k, v in others.items() if k not in self._others or k in stale}
        yield from map(Leaving, last_chunks(output, self._form, text[keep:], fresh))

    # --- Sentences -----------------------------------------------------------------------------

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
        reader = self.call.guard.contexts
        try:
            documents = self.call.find_contexts(self.chain, self._output)
            known = bool(documents) or reader is not None
            return self.call.held_against(documents) if known else None
        except Exception:  # half an output need not have them: with all of it, it is an error
            return None

    def _accepted(self, at: int) -> bool:
        lets_open = self.call.guard.on_error == "open"
        return at in self._by_sentence and all(
            accepts(evaluation) or (lets_open and evaluation.undetermined)
            for evaluation in self._by_sentence[at]
        )

    def _holds_up(self, at: int) -> bool:
        """Whether a sentence holds up what follows it: it is not judged, or was not accepted."""
        return at not in self._stripped and not self._accepted(at)

    def _evaluations(self) -> Iterator[Evaluation]:
        for at in sorted(self._by_sentence):
            for evaluation in self._by_sentence[at]:
                yield _moved(evaluation, self._spans[at])

    @property
    def _text(self) -> str:
        return self._sentences.text

    @property
    def _spans(self) -> list[tuple[int, int]]:
        return self._sentences.spans

    @property
    def _may_leave(self) -> bool:
        """Whether sentences that were accepted may be seen already."""
        return not self._whole and not self._silent and not self._sent.held


def _moved(evaluation: Evaluation, sentence: tuple[int, int]) -> Evaluation:
    """An evaluation of a sentence, with places in the whole answer."""
    by, end = sentence
    claims: list[Claim] = []
    for claim in evaluation.claims:
        own = claim.span or Span(start=0, end=end - by)  # it stands nowhere else
        span = Span(start=own.start + by, end=own.end + by)
        claims.append(claim.model_copy(update={"span": span}))
    return evaluation.model_copy(update={"claims": tuple(claims)})


def _in_common(first: str, second: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


Happening: TypeAlias = Callable[[], None]
"""Something that happened."""


# --- In threads ----------------------------------------------------------------------------------


def stream(
    guard: GuardArguments[Any, Any],
    inputs: Iterator[Any],
    kwargs: Mapping[str, Any],
    config: RunnableConfig,
) -> Iterator[Any]:
    """Stream a guarded call. The chain, and the evaluators, run in other threads.

    Args:
        guard: The guard.
        inputs: The chain's input, in chunks.
        kwargs: For the chain.
        config: The run's.
    """
    chunks = list(inputs)
    if not chunks:
        return
    streamed = StreamedAnswer(call := GuardedCall(guard, reduce(added, chunks), kwargs))
    inbox: SimpleQueue[Happening] = SimpleQueue()

    def begin(work: Callable[[], Happening | None]) -> None:
        in_background(partial(_deliver, inbox, work))

    begin(partial(_read, streamed, config, inbox))
    try:
        while not streamed.settled:
            take(inbox)()
            for at, sample in streamed.to_judge():
                begin(partial(_judge, streamed, at, sample, config))
            yield from streamed.leaving()
        streamed.over = True
        with within_scope(call.scope):
            rest, _ = drive(streamed.finish(), config, None)
        for item in rest:
            if isinstance(item, Leaving):
                yield item.chunk
            else:
                item.tell(config)
    finally:
        streamed.over = True  # a blocking call cannot be stopped, but nothing new is begun


def _read(
    streamed: StreamedAnswer, config: RunnableConfig, inbox: SimpleQueue[Happening]
) -> Happening | None:
    chain = streamed.chain
    with chain.running(config) as inner:
        chunks = chain.chain.stream(chain.input, inner, **chain.kwargs)
        for chunk in chunks:
            if streamed.over:
                if isinstance(chunks, Generator):
                    chunks.close()
                return None
            inbox.put(partial(streamed.feed, chunk))
    return streamed.end


def _judge(
    streamed: StreamedAnswer, at: int, sample: Sample, config: RunnableConfig
) -> Happening | None:
    if streamed.over:
        return None
    with within_scope(streamed.call.scope):
        evaluations, _ = drive(streamed.judge(sample), config, None)
    return partial(streamed.judged, at, evaluations)


def _deliver(inbox: SimpleQueue[Happening], work: Callable[[], Happening | None]) -> None:
    """Work, and tell what came of it."""
    try:
        event = work()
    except BaseException as error:
        event = partial(_throw, error)
    if event is not None:
        inbox.put(event)


def _throw(error: BaseException) -> None:
    raise error


# --- In tasks ------------------------------------------------------------------------------------


async def astream(
    guard: GuardArguments[Any, Any],
    inputs: AsyncIterator[Any],
    kwargs: Mapping[str, Any],
    config: RunnableConfig,
) -> AsyncIterator[Any]:
    """As `stream`, with tasks of the running loop. None of them is left when it ends."""
    chunks = [chunk async for chunk in inputs]
    if not chunks:
        return
    streamed = StreamedAnswer(call := GuardedCall(guard, reduce(added, chunks), kwargs))
    inbox: asyncio.Queue[Happening] = asyncio.Queue()
    tasks: set[asyncio.Task[None]] = set()

    def begin(work: Callable[[], Coroutine[Any, Any, Happening]]) -> None:
        tasks.add(asyncio.create_task(_adeliver(streamed, inbox, work)))

    begin(partial(_aread, streamed, config, inbox))
    try:
        while not streamed.settled:
            (await inbox.get())()
            for at, sample in streamed.to_judge():
                begin(partial(_ajudge, streamed, at, sample, config))
            for chunk in streamed.leaving():
                yield chunk
        streamed.over = True
        await _stop(tasks)
        with within_scope(call.scope):
            rest, _ = await adrive(streamed.finish(), config, None)
        for item in rest:
            if isinstance(item, Leaving):
                yield item.chunk
            else:
                await item.atell(config)
    finally:
        streamed.over = True
        await _stop(tasks)


async def _aread(
    streamed: StreamedAnswer, config: RunnableConfig, inbox: asyncio.Queue[Happening]
) -> Happening:
    chain = streamed.chain
    with chain.running(config) as inner:
        chunks = chain.chain.astream(chain.input, inner, **chain.kwargs)
        async for chunk in chunks:
            inbox.put_nowait(partial(streamed.feed, chunk))
    return streamed.end


async def _ajudge(
    streamed: StreamedAnswer, at: int, sample: Sample, config: RunnableConfig
) -> Happening:
    with within_scope(streamed.call.scope):
        evaluations, _ = await adrive(streamed.judge(sample), config, None)
    return partial(streamed.judged, at, evaluations)


async def _adeliver(
    streamed: StreamedAnswer,
    inbox: asyncio.Queue[Happening],
    work: Callable[[], Coroutine[Any, Any, Happening]],
) -> None:
    try:
        event = await work()
    except BaseException as error:
        if streamed.over:  # it was stopped; kept, the error would hold on to the chain's streams
            return
        event = partial(_throw, error)
    inbox.put_nowait(event)


async def _stop(tasks: set[asyncio.Task[None]]) -> None:
    """Have tasks end, and wait until they have."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:  # a loop that ends closes generators side by side, and none may wait for another
        await asyncio.wait(running)
    tasks.clear()
