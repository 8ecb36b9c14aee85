"""ScoreEventHandler: engines' answers scored in the background, out of LlamaIndex's events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from pydantic import PrivateAttr
from typing_extensions import Self

from demur.observe import OnFull, Recorder, Redact, RunCounts, Runs, SinkLike
from llama_index.evaluation.demur import _spans
from llama_index.evaluation.demur._engine_runs import EngineRuns
from llama_index.evaluation.demur._runnables import EvaluatorLike, adapted


class ScoreEventHandler(BaseEventHandler):
    """Score the answers of engines in the background, and write down what is found.

    Add it to LlamaIndex's dispatcher, and nothing else changes: the handler notes question, answer
    and source nodes of every outermost query (`query`, `aquery`) and chat (`chat`, `achat`,
    `stream_chat`, `astream_chat`) of the process, and threads of its own have them scored. It never
    raises into the application and, with `on_full="drop"`, never holds it up. What a
    `GuardedQueryEngine` or a `GuardedChatEngine` finds is written down as it found it, and is not
    scored again. What evaluators query, LlamaIndex's too, is left out.

    A stream is scored when somebody has read it to its end. One that is left before has no answer,
    as has a query that raises; both are counted. A chat engine that writes its streams into its own
    memory has an answer when that is done, whoever reads it.

    Example:
        >>> handler = ScoreEventHandler(RefCheckerEvaluator(), sink="scores.sqlite")
        >>> get_dispatcher().add_event_handler(handler)
        >>> index.as_query_engine().query("How tall is the tower?")
        >>> handler.flush(60)

    Args:
        evaluators: Ours, other evaluators of LlamaIndex, or Runnables and functions from `Sample`
            to `Evaluation`; with a threshold or without. With none, only what guarded engines find
            is recorded.
        sink: Where records go: a path that ends in `.sqlite`, `.sqlite3`, `.db`, `.jsonl` or
            `.ndjson`; a `demur.observe.Sink`, or an object with `write(record)`; a function of a
            `demur.observe.Record`; or several of these in a list.
        sample_rate: The share of runs to record, in [0, 1]. Which ones is decided by the run's id,
            so that all handlers choose the same.
        max_queue: How many runs may wait to be scored, at least 1.
        on_full: What becomes of a run for which there is no room: "drop", it is counted and not
            scored; "block", whoever asked the engine waits. LlamaIndex calls handlers where the
            engine runs, so in asyncio the whole loop waits then, until the handler's threads have
            made room.
        redact: What becomes of texts before they leave: None, they stay; "remove" or "hash"; or a
            function from text to text. Keys and headers are taken out in any case: see
            `demur.observe.redaction`.
        max_concurrency: How many runs are scored at a time, at least 1.
        names: Record the outermost runs of engines of these classes, such as
            "RetrieverQueryEngine", instead of the outermost of all.
        tags: The same for keys of `instrument_tags`. A record has the keys as its tags, and in its
            metadata the values.
        fallback: The file for records that a sink does not take; None for a new one in the system's
            temporary folder when it is needed.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: An evaluator or a sink is none.
        DemurError: A sink's file cannot be used.
        MissingExtraError: What a sink needs is not installed.
    """

    _runs: Runs = PrivateAttr()
    _recorder: Recorder = PrivateAttr()
    _engines: EngineRuns = PrivateAttr()

    def __init__(
        self,
        *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
        sink: SinkLike,
        sample_rate: float = 1.0,
        max_queue: int = 1000,
        on_full: OnFull = "drop",
        redact: Redact = None,
        max_concurrency: int = 4,
        names: str | Sequence[str] = (),
        tags: str | Sequence[str] = (),
        fallback: str | Path | None = None,
    ) -> None:
        """See the class."""
        super().__init__()
        self._runs = Runs(sample_rate=sample_rate, names=names, tags=tags)
        self._recorder = Recorder(
            [*map(adapted, evaluators)],
            sink,
            max_queue=max_queue,
            on_full=on_full,
            max_concurrency=max_concurrency,
            redact=redact,
            fallback=fallback,
        )
        self._engines = EngineRuns(self._runs, self._recorder.put)
        _spans.install()

    @classmethod
    def class_name(cls) -> str:
        """Its name in LlamaIndex."""
        return "ScoreEventHandler"

    @property
    def counts(self) -> RunCounts:
        """What became of the runs so far."""
        return self._recorder.counts(self._runs.tally)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Take note of an event."""
        self._engines.take(event)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every run that has ended before is recorded, and sinks have sent it on.

        Args:
            timeout: For how many seconds at most, and one for the sinks; None for as long as it
                takes.

        Returns:
            Whether it is.
        """
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Take in nothing more, finish what was taken in, and let go of the sinks.

        What is not done in time is dropped, counted, and told in a warning. The interpreter's end
        closes every handler that is open, and gives them 30 seconds.

        Args:
            timeout: For how many seconds to wait at most, and one for the sinks; None for as long
                as it takes.

        Returns:
            Whether all was done.
        """
        return self._recorder.close(timeout)

    def __copy__(self) -> Self:
        """Itself: what is under way cannot be copied."""
        return self

    def __deepcopy__(self, memo: Any = None) -> Self:
        """Itself."""
        return self
