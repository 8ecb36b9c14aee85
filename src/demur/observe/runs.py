"""Follow runs by their callback events, and return each run that is to be recorded when it ends.

State is kept by run id, for as long as the run lasts. Nothing here waits or calls a model.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config

from demur._system import renewed
from demur.guard import Capture, Trace
from demur.observe.finished import About, Finished, author_of, plain
from demur.observe.records import TraceLink
from demur.observe.spans import current_span_ids
from demur.observe.texts import Readers, Said, read
from demur.runtime import JUDGE, is_interrupt
from demur.schema import Evaluation
from demur.shapes import find_question

_MOST_OPEN = 50_000
"""The most runs that are followed at a time; then the oldest are given up. A stream that nobody
reads to its end or closes never reports its end."""
_MOST_OVER = 10_000
"""The most ended runs that are remembered, so that their leftover work is no new run."""


@dataclass(eq=False)
class _Scored:
    """Hold a run whose answer is wanted, with what is known of the runs inside it."""

    run: _Run
    trace_id: str | None
    span_id: str | None
    capture: Capture = field(default_factory=Capture)
    open: set[UUID] = field(default_factory=set)
    """The ids of the runs inside it that have not ended."""
    judged: bool = False
    """Whether a guard inside the run has judged an answer."""
    guarded: bool = False
    """Whether a guard inside the run has returned an output, which becomes the run's answer."""


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
    """The wanted run that this run belongs to; None if there is none."""
    model: str | None = None
    response: str | None = None
    paused: bool = False
    """Whether a step inside the run was interrupted to ask a person, so that it ends unanswered."""
    beside: Sequence[Any] = ()
    """The handlers that hear the run, if they are known."""
    links: dict[str, TraceLink] = field(default_factory=dict)
    trace: Trace | None = None
    evaluations: list[tuple[int, Evaluation]] = field(default_factory=list)


@dataclass
class Tally:
    """Count the runs that began, and those that ended before they could be scored.

    `RunCounts` describes the fields.
    """

    runs: int = 0
    unsampled: int = 0
    unanswered: int = 0
    given_up: int = 0


class Runs:
    """Follow the runs that have begun and not ended. Safe in threads."""

    def __init__(
        self,
        readers: Readers,
        sample_rate: float,
        names: str | Collection[str],
        tags: str | Collection[str],
    ) -> None:
        """Choose the outermost runs, or the outermost runs that have one of `names` or `tags`.

        Args:
            readers: Where question, answer and contexts are.
            sample_rate: The share of these runs that are recorded, in [0, 1].
            names: One or more names of runs.
            tags: One or more tags.

        Raises:
            ValueError: `sample_rate` is out of its range.
        """
        if not 0 <= sample_rate <= 1:
            raise ValueError(f"sample_rate must be in [0, 1], got {sample_rate}")
        self.tally = Tally()
        self.locate: Callable[..., dict[str, TraceLink]] = lambda *_: {}
        """Finds the traces of a run in several systems, as `TraceSink.locate` does in one."""
        self._readers = readers
        self._sample_rate = sample_rate
        self._names, self._tags = _several(names), _several(tags)
        self._open: dict[UUID, _Run | None] = {}
        """The runs by id; None for a run that is ignored, together with the runs inside it."""
        self._over: dict[UUID, None] = {}
        # Garbage collection may close an abandoned stream at any moment. The stream then reports
        # its end in a thread that may hold this lock already, so the lock must be reentrant.
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
        """Record that a run begins.

        Args:
            input: The run's input.
            run_id: The run's id.
            answers: Whether runs of this kind give an answer, as those of chains and models do.
            parent_run_id: The id of the run that this run is part of.
            name: The run's name.
            tags: The run's tags.
            metadata: The run's metadata.

        Returns:
            The `Capture` that must hear the event, if the run belongs to a wanted run; else None.
        """
        tags = tags or ()
        with self._lock:
            if run_id in self._open:  # the handler is attached twice
                return self.capture(run_id)
            self._over.pop(run_id, None)  # users may give the same id again
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
        if run.scored is None:
            return None
        # Not with the lock, since other libraries hold locks of their own in here.
        if run.scored.run is run:
            run.links = self.locate(run_id, None)
        else:
            self._locate_around(run.parent)
        return run.scored.capture

    def _enclosing(self) -> UUID | None:
        """Return the open run in which a run without a parent begins, or None.

        This happens inside a `RunnableWithFallbacks`, which passes its own callbacks on.
        """
        config = var_child_runnable_config.get() or {}
        enclosing: UUID | None = getattr(config.get("callbacks"), "parent_run_id", None)
        return enclosing if enclosing in self._open else None

    def _locate_around(self, run: _Run | None) -> None:
        """Find the traces of a run, and of those around it. All handlers know them by now."""
        callbacks = (var_child_runnable_config.get() or {}).get("callbacks")
        beside = getattr(callbacks, "handlers", ())
        while beside and run and run.scored and not run.beside:
            run.beside = beside
            run.links |= self.locate(run.id, beside)
            run = run.parent

    def _wants(self, run: _Run) -> bool:
        if self._names or self._tags:
            return run.name in self._names or not self._tags.isdisjoint(run.tags)
        return run.parent is None

    def _samples(self, run_id: UUID) -> bool:
        # The id decides, so that all handlers and all processes choose the same runs.
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

    # --- While it runs -------------------------------------------------------------------------

    def capture(self, run_id: UUID) -> Capture | None:
        """Return the `Capture` that must hear the events of this run, or None."""
        run = self._open.get(run_id)
        return None if run is None or run.scored is None else run.scored.capture

    def wrote(self, run_id: UUID, response: LLMResult) -> None:
        """Record which model wrote a reply, for its run and for the runs around it."""
        run = self._open.get(run_id)
        if run is None or run.scored is None:
            return
        model, response_id = author_of(response, run.metadata)
        inside: _Run | None = run
        while inside is not None:
            inside.model, inside.response = model, response_id
            inside = inside.parent

    def evaluated(self, run_id: UUID, attempt: int, evaluation: Evaluation) -> None:
        """Record an evaluation that a guard reports of an attempt."""
        run = self._open.get(run_id)
        if run is not None:
            run.evaluations.append((attempt, evaluation))

    # --- The end -------------------------------------------------------------------------------

    def guarded(self, run_id: UUID, trace: Trace) -> None:
        """Record the trace of a guard's run, which ends next."""
        run = self._open.get(run_id)
        if run is not None:
            run.trace = trace

    def end(self, run_id: UUID, output: Any, input: Any = None) -> Finished | None:
        """Record that a run ended.

        Args:
            run_id: The run's id.
            output: The run's output.
            input: The run's input, if it was not known when the run began.

        Returns:
            The run to be scored or recorded; None if it is not wanted or has no answer.
        """
        run = self._ended(run_id)
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
        """Record that a run failed or was cancelled; return it if a guard judged its answers."""
        run = self._ended(run_id)
        if run is None or run.scored is None:
            return None
        if run.parent is not None and error is not None and is_interrupt(error):
            # A person is asked. The graph around it ends without an error, and its output is the
            # state before this step, such as the answer to an earlier question.
            run.parent.paused = True
        judged = _judged_by_guard(run, run.scored, None)
        if judged is None and run.scored.run is run:
            self._unanswered(run.scored)
        return judged

    def _ended(self, run_id: UUID) -> _Run | None:
        run = self._close(run_id)
        if run and run.scored and (run.scored.run is run or run.trace):
            run.links = self.locate(run_id, run.beside) | run.links
        return run

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
                # Runs inside it may go on, such as in a thread that was left behind.
                for inside in [*scored.open]:
                    self._open.pop(inside, None)
                    self._forget(inside)
            return run

    def _forget(self, run_id: UUID) -> None:
        self._over[run_id] = None
        if len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]

    def reset(self) -> None:
        """Forget the open runs in a forked process: they belong to its parent."""
        self._lock = threading.RLock()
        for run_id in [*self._open]:
            self._forget(run_id)
        self._open.clear()


def _judged_by_guard(run: _Run, scored: _Scored, output: Any) -> Finished | None:
    """Return a guard's run with its attempts, or None if `run` is not a guard's."""
    if run.trace is None and not run.evaluations:
        return None
    scored.judged = True
    scored.guarded = scored.guarded or output is not None
    about = _about(run, scored)
    if run.trace is not None:
        return Finished(about, Said(), trace=run.trace)
    # The guard raised, or its stream was not read to the end: the output is the part that left.
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
        traces=tuple(run.links.values()),
    )


def _several(names: str | Collection[str]) -> frozenset[str]:
    return frozenset((names,) if isinstance(names, str) else names)


def _as_given(input: Any) -> Any:
    """Copy the input of a run, since the chain may change it afterwards."""
    if type(input) is dict:
        return {key: [*entry] if type(entry) is list else entry for key, entry in input.items()}
    return [*input] if type(input) is list else input
