"""The callback handler: LangChain's events in, runs to be scored out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from typing_extensions import Self

from demur.evaluators import EvaluatorLike
from demur.guard import EVALUATION, Trace, evaluation_of_event
from demur.observe.backlog import OnFull
from demur.observe.finished import Finished
from demur.observe.reading import Readers
from demur.observe.recorder import Recorder, RunCounts
from demur.observe.redaction import Redact
from demur.observe.runs import Runs
from demur.observe.sinks import SinkLike
from demur.shapes import ContextsReader, Reader


class ScoreCallbackHandler(BaseCallbackHandler):
    """Score the answers of a chain in the background, and write down what is found.

    Attach it to a chain, and nothing else changes: the handler notes question, contexts and answer
    of every outermost run, and threads of its own have them scored. It never raises into the chain
    and, with `on_full="drop"`, never holds it up. It serves sync chains and asyncio alike. What a
    `Guard` in the chain finds is written down as the guard found it, and is not scored again.

    Evaluators are called by `invoke`, in threads. One that is only asynchronous runs in an event
    loop of demur's own, so it cannot share an asynchronous client with the chain: give it one of
    its own.

    Where question, answer and contexts are found is what `Guard` says; of an agent, whose output is
    messages, the last that the model wrote is the answer, and what its tools returned are the
    contexts. A run whose answer cannot be found is recorded as undetermined, with the reason.

    Examples:
        >>> handler = ScoreCallbackHandler(RefChecker("openai:gpt-4o-mini"), sink="scores.sqlite")
        >>> chain.invoke("How tall is the tower?", config={"callbacks": [handler]})
        >>> handler.flush(60)

    Args:
        evaluators: What `Guard` takes, with a threshold or without. With none, only what guards
            find is recorded.
        sink: Where records go: a path that ends in `.sqlite`, `.sqlite3`, `.db`, `.jsonl` or
            `.ndjson`; a URL, `postgresql://user@host/database`; a `demur.observe.Sink`, or an
            object with `write(record)`; a function of a `demur.observe.Record`; or several of these
            in a list.
        sample_rate: The share of runs to record, in [0, 1]. Which ones is decided by the run's id,
            so that all handlers choose the same.
        max_queue: How many runs may wait to be scored, at least 1.
        on_full: What becomes of a run for which there is no room: "drop", it is counted and not
            scored; "block", the chain waits. In asyncio, waiting needs a thread for each event.
        redact: What becomes of texts before they leave: None, they stay; "remove" or "hash"; or a
            function from text to text. Keys and headers are taken out in any case: see
            `demur.observe.redaction`.
        max_concurrency: How many runs are scored at a time, at least 1.
        names: Record the outermost runs with one of these names, instead of the outermost of all.
        tags: The same for tags.
        question: Where the question is: a key of the input, or a function of the input.
        answer: Where the answer is: a key of the output, or a function of the output.
        contexts: Where the contexts are: a key of the output or the input, a function of the
            output, or a function of the input and the output (two required parameters).
        fallback: The file for records that a sink does not take; None for one beside the sink's
            file, or in the system's temporary folder where the sink has none.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: An evaluator or a sink is none, or what says where something is is neither a key
            nor a function.
        DemurError: A sink's file cannot be used.
        MissingExtraError: What a sink needs is not installed.
    """

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
        question: Reader | None = None,
        answer: Reader | None = None,
        contexts: ContextsReader | None = None,
        fallback: str | Path | None = None,
    ) -> None:
        super().__init__()
        self._runs = Runs(Readers(question, answer, contexts), sample_rate, names, tags)
        self._recorder = Recorder(
            evaluators,
            sink,
            max_queue=max_queue,
            on_full=on_full,
            max_concurrency=max_concurrency,
            redact=redact,
            fallback=fallback,
        )
        # In asyncio, in the loop's own thread and not in a thread for every event: it takes
        # microseconds, unless it waits for room.
        self.run_inline = on_full == "drop"

    @property
    def counts(self) -> RunCounts:
        """What became of the runs so far."""
        return self._recorder.counts(self._runs.tally)

    def __copy__(self) -> Self:
        """Itself: what is under way cannot be copied, and LangChain copies models with handlers."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself."""
        return self

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every run that has ended before is recorded, and sinks have sent it on.

        In a coroutine: `await asyncio.to_thread(handler.flush, 60)`.

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

    # --- What LangChain tells --------------------------------------------------------------------

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """A chain begins."""
        if capture := self._runs.start(inputs, answers=True, **kwargs):
            capture.on_chain_start(serialized, inputs, **kwargs)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """A chain has its output."""
        # Of a stream LangChain gives the inputs only now. One whose reader left has no output yet,
        # or has all but the chunk that was read last.
        if outputs is None and "inputs" in kwargs:
            self._put(self._runs.fail(kwargs["run_id"]))
        else:
            self._put(self._runs.end(kwargs["run_id"], outputs, kwargs.get("inputs")))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """A chain raised, or was stopped."""
        self._put(self._runs.fail(kwargs["run_id"], error))

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """A tool begins."""
        if capture := self._runs.start(input_str, answers=False, **kwargs):
            capture.on_tool_start(serialized, input_str, **kwargs)

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """A tool has its output."""
        self._runs.end(kwargs["run_id"], output)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """A tool raised."""
        self._runs.fail(kwargs["run_id"], error)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """A retriever begins."""
        if capture := self._runs.start(query, answers=False, **kwargs):
            capture.on_retriever_start(serialized, query, **kwargs)

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """A retriever has its documents."""
        if capture := self._runs.capture(kwargs["run_id"]):
            capture.on_retriever_end(documents, **kwargs)
        self._runs.end(kwargs["run_id"], documents)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        """A retriever raised."""
        self._runs.fail(kwargs["run_id"], error)

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """A chat model begins."""
        self._model_start(serialized, messages, kwargs)

    def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
        """A text model begins."""
        self._model_start(serialized, prompts, kwargs)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """A model has its reply."""
        run_id: UUID = kwargs["run_id"]
        if capture := self._runs.capture(run_id):
            capture.on_llm_end(response, **kwargs)
            self._runs.wrote(run_id, response)
        first = next(
            (generation for several in response.generations for generation in several), None
        )
        output = first.message if isinstance(first, ChatGeneration) else getattr(first, "text", "")
        self._put(self._runs.end(run_id, output))

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A model raised."""
        if capture := self._runs.capture(kwargs["run_id"]):
            capture.on_llm_error(error, **kwargs)
        self._put(self._runs.fail(kwargs["run_id"], error))

    # --- What guards tell ------------------------------------------------------------------------

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """A guard tells what it found."""
        if name == EVALUATION:
            self._runs.evaluated(kwargs["run_id"], data["attempt"], evaluation_of_event(data))

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        """Keep how a guard's call went, until its run is over."""
        self._runs.guarded(run_id, trace)

    def _model_start(self, serialized: Any, prompts: Any, kwargs: dict[str, Any]) -> None:
        if capture := self._runs.start(next(iter(prompts), ""), answers=True, **kwargs):
            capture.on_llm_start(serialized, prompts, **kwargs)

    def _put(self, finished: Finished | None) -> None:
        if finished is not None:
            self._recorder.put(finished)
