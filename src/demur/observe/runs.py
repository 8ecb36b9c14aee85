"""What callbacks tell of runs, put together: each run that is to be recorded, when it is over.

State is kept by run id and lives as long as the run. Nothing here waits, and nothing calls a model.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config

from demur._forks import renewed
from demur.guard import Capture, Trace
from demur.observe.finished import About, Finished, author_of, plain
from demur.observe.reading import Readers, Said, read
from demur.observe.spans import current_span_ids
from demur.runtime import JUDGE
from demur.schema import Evaluation
from demur.shapes import find_question

_MOST_OPEN = 50_000
"""Runs under way at a time; of more, the oldest are given up. A stream that nobody reads to its end
or closes never tells that it is over."""
_MOST_OVER = 10_000
"""Runs that are over and still known, so that what they left behind is no run of its own."""


@dataclass(eq=False)
class _Scored:
    """A run whose answer is wanted, with all that it sets off."""

    run: _Run
    trace_id: str | None
    span_id: str | None
    capture: Capture = field(default_factory=Capture)
    open: set[UUID] = field(default_factory=set)
    """The runs inside it that are under way."""
    judged: bool = False
    """Whether a guard inside it has judged an answer."""
    guarded: bool = False
    """Whether one has, and has let its answer through: what the run answers comes from it."""


@dataclass(eq=False)
class _Run:
    id: UUID
    parent: _Run | None
    name: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    input: Any
    started: float
    scored: _Scored | None = None
    """What it belongs to; None outside of what is wanted."""
    model: str | None = None
    response: str | None = None
    paused: bool = False
    """Whether something inside it asked for a person, and it ends without an answer."""
    trace: Trace | None = None
    evaluations: list[tuple[int, Evaluation]] = field(default_factory=list)


@dataclass
class Tally:
    """What became of runs before they could be scored."""

    runs: int = 0
    """Runs that were wanted: outermost ones, or those named."""
    unsampled: int = 0
    """Of these, those that `sample_rate` left out."""
    unanswered: int = 0
    """Of these, those that raised, were stopped or interrupted, or only called tools."""
    given_up: int = 0
    """Of these, those that never told that they were over."""


class Runs:
    """The runs under way. Safe in threads."""

    def __init__(
        self,
        readers: Readers | None = None,
        sample_rate: float = 1.0,
        names: str | Collection[str] = (),
        tags: str | Collection[str] = (),
    ) -> None:
        """Want the outermost runs; with `names` or `tags`, the outermost of those that have one.

        Args:
            readers: Where question, answer and contexts are; None to have them found.
            sample_rate: The share of runs that are wanted, in [0, 1].
            names: One, or several.
            tags: One, or several.

        Raises:
            ValueError: `sample_rate` is out of its range.
        """
        if not 0 <= sample_rate <= 1:
            raise ValueError(f"sample_rate must be in [0, 1], got {sample_rate}")
        self.tally = Tally()
        self._readers = readers or Readers()
        self._sample_rate = sample_rate
        self._names, self._tags = _several(names), _several(tags)
        self._open: dict[UUID, _Run | None] = {}
        """None for what nothing is wanted of, the runs inside it included."""
        self._over: dict[UUID, None] = {}
        # Garbage may be collected at any allocation, and an abandoned stream that is closed then
        # tells of its end: a thread that has the lock may come for it again.
        self._lock = threading.RLock()
        renewed(self, Runs.reset)

    def __len__(self) -> int:
        return len(self._open)

    # --- Beginning -----------------------------------------------------------------------------

    def start(
        self,
        input: Any,
        *,
        run_id: UUID,
        answers: bool,
        parent_run_id: UUID | None = None,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Capture | None:
        """A run begins.

        Args:
            input: What it was given.
            run_id: Its id.
            answers: Whether it is of a kind that gives an answer, as chains and models do.
            parent_run_id: The run that it is part of.
            name: Its name.
            tags: Its tags.
            metadata: Its metadata.

        Returns:
            What is to be told of the event, if the run belongs to one that is wanted.
        """
        tags = tags or ()
        with self._lock:
            if run_id in self._open:  # the handler is there twice
                return self.capture(run_id)
            self._over.pop(run_id, None)  # ids that users give may come again
            if parent_run_id is None:
                parent_run_id = self._enclosing()
            if parent_run_id in self._over:
                self._forget(run_id)
                return None
            parent = None if parent_run_id is None else self._open.get(parent_run_id)
            unwanted = parent is None and parent_run_id in self._open
            if unwanted or JUDGE in tags:
                self._keep(run_id, None)
                return None
            started = time.monotonic()
            run = _Run(run_id, parent, name, tags, metadata or {}, input, started)
            if parent is not None and parent.scored is not None:
                run.scored = parent.scored
                run.scored.open.add(run_id)
            elif answers and self._wants(run):
                self.tally.runs += 1
                if not self._samples(run_id):
                    self.tally.unsampled += 1
                    self._keep(run_id, None)
                    return None
                run.scored = _Scored(run, *current_span_ids())
                run.input = _as_given(input)
            self._keep(run_id, run)
            return None if run.scored is None else run.scored.capture

    def _enclosing(self) -> UUID | None:
        """The open run in which a run begins that names no parent.

        As what is in a `RunnableWithFallbacks`, which gives its own callbacks to what it calls.
        """
        config = var_child_runnable_config.get() or {}
        enclosing: UUID | None = getattr(config.get("callbacks"), "parent_run_id", None)
        return enclosing if enclosing in self._open else None

    def _wants(self, run: _Run) -> bool:
        if self._names or self._tags:
            return run.name in self._names or not self._tags.isdisjoint(run.tags)
        return run.parent is None

    def _samples(self, run_id: UUID) -> bool:
        # By the id, so that handlers, and processes, choose the same runs.
        if self._sample_rate >= 1:
            return True
        digest = hashlib.blake2b(run_id.bytes, digest_size=8).digest()
        return int.from_bytes(digest, "big") < self._sample_rate * 2**64

    def _keep(self, run_id: UUID, run: _Run | None) -> None:
        self._open[run_id] = run
        if len(self._open) > _MOST_OPEN:
            oldest = self._close(next(iter(self._open)))
            if oldest is not None and oldest.scored is not None and oldest.scored.run is oldest:
                self.tally.given_up += 1

    # --- Meanwhile -----------------------------------------------------------------------------

    def capture(self, run_id: UUID) -> Capture | None:
        """What is to be told of an event of a run that began."""
        run = self._open.get(run_id)
        return None if run is None or run.scored is None else run.scored.capture

    def wrote(self, run_id: UUID, response: LLMResult) -> None:
        """A model's run has its reply: note who wrote for the runs that it is part of."""
        run = self._open.get(run_id)
        if run is None or run.scored is None:
            return
        model, response_id = author_of(response, run.metadata)
        inside: _Run | None = run
        while inside is not None:
            inside.model, inside.response = model, response_id
            inside = inside.parent

    def evaluated(self, run_id: UUID, attempt: int, evaluation: Evaluation) -> None:
        """A guard's run tells an evaluation of an attempt."""
        run = self._open.get(run_id)
        if run is not None:
            run.evaluations.append((attempt, evaluation))

    # --- The end -------------------------------------------------------------------------------

    def guarded(self, run_id: UUID, trace: Trace) -> None:
        """A guard's run tells how it went; it is over next."""
        run = self._open.get(run_id)
        if run is not None:
            run.trace = trace

    def end(self, run_id: UUID, output: Any, input: Any = None) -> Finished | None:
        """A run is over.

        Args:
            run_id: Its id.
            output: Its output.
            input: What it was given, where that was not known at its beginning.

        Returns:
            What is to be scored, or recorded, if it is one of those wanted.
        """
        run = self._close(run_id)
        if run is None or run.scored is None:
            return None
        if input is not None:
            run.input = input
        judged = _judged_by_guard(run, run.scored, output)
        if judged is not None or run.scored.run is not run or run.scored.guarded:
            return judged
        capture = run.scored.capture
        content = None
        if not run.paused:
            content = read(run.input, output, capture.documents, self._readers)
        if content is None:
            self._unanswered(run.scored)
            return None
        return Finished(_about(run, run.scored), content, capture.usage)

    def fail(self, run_id: UUID, error: BaseException | None = None) -> Finished | None:
        """A run raised, or was stopped: there is no answer, unless a guard has judged some."""
        run = self._close(run_id)
        if run is None or run.scored is None:
            return None
        if run.parent is not None and _is_interrupt(error):
            # The graph around it ends as if all was well, with what it knew before, such as the
            # answer to the question before this one.
            run.parent.paused = True
        judged = _judged_by_guard(run, run.scored, None)
        if judged is None and run.scored.run is run:
            self._unanswered(run.scored)
        return judged

    def _unanswered(self, scored: _Scored) -> None:
        if not scored.judged:
            with self._lock:
                self.tally.unanswered += 1

    def _close(self, run_id: UUID) -> _Run | None:
        with self._lock:
            run = self._open.pop(run_id, None)
            scored = None if run is None else run.scored
            if scored is not None:
                scored.open.discard(run_id)
            if run is None or scored is not None:
                self._forget(run_id)
            if scored is not None and scored.run is run:
                # Such as a thread that was left behind.
                for inside in [*scored.open]:
                    self._open.pop(inside, None)
                    self._forget(inside)
            return run

    def _forget(self, run_id: UUID) -> None:
        self._over[run_id] = None
        if len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]

    def reset(self) -> None:
        """Leave what is under way to the process that this one was forked from."""
        self._lock = threading.RLock()
        for run_id in [*self._open]:
            self._forget(run_id)
        self._open.clear()


def _judged_by_guard(run: _Run, scored: _Scored, output: Any) -> Finished | None:
    """What a guard's run comes to."""
    if run.trace is None and not run.evaluations:
        return None
    scored.judged = True
    scored.guarded = scored.guarded or output is not None
    about = _about(run, scored)
    if run.trace is not None:
        return Finished(about, Said(), trace=run.trace)
    # It raised, or nobody read its stream to the end: what left of it is its output.
    content = None if output is None else read(run.input, output, (), Readers())
    return Finished(
        about, content or Said(find_question(run.input)), evaluations=tuple(run.evaluations)
    )


def _about(run: _Run, scored: _Scored) -> About:
    root = run
    while root.parent is not None:
        root = root.parent
    return About(
        id=str(run.id),
        root=str(root.id),
        time=datetime.now(timezone.utc),
        name=run.name,
        tags=tuple(map(str, run.tags)),
        metadata=plain(run.metadata),
        model=run.model,
        response=run.response,
        trace_id=scored.trace_id,
        span_id=scored.span_id,
        seconds=time.monotonic() - run.started,
    )


def _several(names: str | Collection[str]) -> frozenset[str]:
    return frozenset((names,) if isinstance(names, str) else names)


def _as_given(input: Any) -> Any:
    """What a run was given, as it is now: a chain may change it."""
    if type(input) is dict:
        return {key: [*entry] if type(entry) is list else entry for key, entry in input.items()}
    return [*input] if type(input) is list else input


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it is langgraph's way to ask a person."""
    return any(base.__name__ == "GraphInterrupt" for base in type(error).__mro__)
