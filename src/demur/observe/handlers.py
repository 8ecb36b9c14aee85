"""Turn LangChain's callback events into runs that are scored in the background."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from typing_extensions import Self

from demur.evaluators import EvaluatorLike
from demur.guard import EVALUATION, Trace, evaluation_of_event
from demur.observe.backlog import OnFull
from demur.observe.finished import Finished
from demur.observe.recorder import Recorder, RunCounts
from demur.observe.redaction import Redact
from demur.observe.runs import Runs
from demur.observe.sinks import SinkLike
from demur.observe.texts import Readers
from demur.runtime import reply_in
from demur.shapes import ContextsReader, Reader


class ScoreCallbackHandler(BaseCallbackHandler):
    """Score the answers of a chain in the background, and write the scores to sinks.

    Attach the handler to a chain; the chain itself does not change. The handler reads the question,
    the contexts and the answer of every outermost run, and scores them in threads of its own. It
    never raises an error into the chain. With `on_full="drop"`, it never makes the chain wait. It
    works with sync chains and with asyncio. If the chain contains a `Guard`, the handler records
    the guard's evaluations and does not score the answer again.

    The handler calls evaluators by `invoke`, in threads. An evaluator that is only asynchronous
    runs in an event loop of demur's own. It cannot share an asynchronous client with the chain, so
    give it a client of its own.

    The handler finds question, answer and contexts in the places that `Guard` describes. If the
    output is the messages of an agent, the answer is the last message that the model wrote, and the
    contexts are what the agent's tools returned. A run whose answer cannot be found is recorded as
    undetermined, with the reason.

    Examples:
        >>> handler = ScoreCallbackHandler(RefChecker("openai:gpt-4o-mini"), sink="scores.sqlite")
        >>> chain.invoke("How tall is the tower?", config={"callbacks": [handler]})
        >>> handler.flush(60)

    Args:
        evaluators: The evaluators that `Guard` takes, with or without a threshold. Without any, the
            handler records only what guards in the chain evaluated.
        sink: Where records go: a path that ends in `.sqlite`, `.sqlite3`, `.db`, `.jsonl` or
            `.ndjson`; a URL, `postgresql://user@host/database`; "langsmith", "langfuse", "phoenix"
            or "mlflow"; a `demur.observe.Sink`, or an object with `write(record)`; a function that
            takes a `demur.observe.Record`; or a list of these.
        sample_rate: The share of runs to record, in [0, 1]. The run's id decides, so that all
            handlers choose the same runs.
        max_queue: The largest number of runs that wait to be scored, at least 1.
        on_full: What to do with a run when the queue is full. "drop": the run is counted and not
            scored. "block": the chain waits; in asyncio, this needs a thread for each event.
        redact: What to do with texts before they leave. None keeps them; "remove" and "hash"
            replace them; a function maps each text to another. Keys and headers are removed in any
            case, see `demur.observe.redaction`.
        max_concurrency: The largest number of runs that are scored at a time, at least 1.
        names: One or more names. The handler then records the outermost runs that have one of these
            names or one of `tags`, instead of the outermost runs of all.
        tags: One or more tags, which choose runs as `names` do.
        question: Where the question is: a key of the input, or a function of the input.
        answer: Where the answer is: a key of the output, or a function of the output.
        contexts: Where the contexts are: a key of the output or the input, a function of the
            output, or a function of the input and the output (with two required parameters).
        fallback: The file for records that a sink does not accept. None: a file beside the sink's
            own file, or in the system's temporary folder if the sink has no file.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: A value is not an evaluator or a sink where one is expected; or `question`,
            `answer` or `contexts` is neither a key nor a function.
        DemurError: A sink cannot write to its file or its server.
        MissingExtraError: A package that a sink needs is not installed.
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
        self._runs.locate = self._recorder.locate
        # An event takes microseconds unless the handler waits for room. So with asyncio, events are
        # handled in the event loop's thread, and not each in a thread of its own.
        self.run_inline = on_full == "drop"

    @property
    def counts(self) -> RunCounts:
        """Return how many runs were recorded, dropped, lost and so on until now."""
        return self._recorder.counts(self._runs.tally)

    def __copy__(self) -> Self:
        """Return this handler itself, since its queue and its threads cannot be copied.

        LangChain copies models together with their handlers.
        """
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Return this handler itself, as `copy.copy` does."""
        return self

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all runs that have ended are recorded, and sinks have sent them on.

        In a coroutine, write `await asyncio.to_thread(handler.flush, 60)`.

        Args:
            timeout: The longest time to wait, in seconds. The sinks get the time that is left, and
                at least one second. None waits without a limit.

        Returns:
            True if all of this was done, False if the time ran out.
        """
        return self._recorder.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Accept no more runs, finish those in the queue, and close the sinks.

        Runs that are not done before the timeout are dropped and counted, and a warning is logged.
        When the interpreter exits, demur closes all open handlers; they get 30 seconds together.

        Args:
            timeout: The longest time to wait, in seconds. The sinks get the time that is left, and
                at least one second. None waits without a limit.

        Returns:
            True if all of this was done, False if the time ran out.
        """
        return self._recorder.close(timeout)

    # --- LangChain's events ----------------------------------------------------------------------

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Record that a chain starts."""
        if capture := self._runs.start(inputs, answers=True, **kwargs):
            capture.on_chain_start(serialized, inputs, **kwargs)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """Record the output of a chain, and queue the run to be scored."""
        # For a stream, LangChain gives the inputs only now. If the reader left early, the output is
        # None, or lacks the chunk that was read last.
        if outputs is None and "inputs" in kwargs:
            self._put(self._runs.fail(kwargs["run_id"]))
        else:
            self._put(self._runs.end(kwargs["run_id"], outputs, kwargs.get("inputs")))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Record that a chain raised an error, or was cancelled."""
        self._put(self._runs.fail(kwargs["run_id"], error))

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Record that a tool starts."""
        if capture := self._runs.start(input_str, answers=False, **kwargs):
            capture.on_tool_start(serialized, input_str, **kwargs)

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """Record that a tool ended."""
        self._runs.end(kwargs["run_id"], output)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """Record that a tool raised an error."""
        self._runs.fail(kwargs["run_id"], error)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """Record that a retriever starts."""
        if capture := self._runs.start(query, answers=False, **kwargs):
            capture.on_retriever_start(serialized, query, **kwargs)

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """Record the documents that a retriever returned."""
        if capture := self._runs.capture(kwargs["run_id"]):
            capture.on_retriever_end(documents, **kwargs)
        self._runs.end(kwargs["run_id"], documents)

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        """Record that a retriever raised an error."""
        self._runs.fail(kwargs["run_id"], error)

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """Record that a chat model starts."""
        self._model_start(serialized, messages, kwargs)

    def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
        """Record that a text model starts."""
        self._model_start(serialized, prompts, kwargs)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Record the reply of a model, and queue the run if it is an outermost one."""
        run_id: UUID = kwargs["run_id"]
        if capture := self._runs.capture(run_id):
            capture.on_llm_end(response, **kwargs)
            self._runs.wrote(run_id, response)
        self._put(self._runs.end(run_id, reply_in(response)))

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Record that a model raised an error."""
        if capture := self._runs.capture(kwargs["run_id"]):
            capture.on_llm_error(error, **kwargs)
        self._put(self._runs.fail(kwargs["run_id"], error))

    # --- Guards' events --------------------------------------------------------------------------

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Record an evaluation that a guard reports."""
        if name == EVALUATION:
            self._runs.evaluated(kwargs["run_id"], data["attempt"], evaluation_of_event(data))

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        """Keep the trace of a guard's call until the guard's run ends."""
        self._runs.guarded(run_id, trace)

    def _model_start(self, serialized: Any, prompts: Any, kwargs: dict[str, Any]) -> None:
        if capture := self._runs.start(next(iter(prompts), ""), answers=True, **kwargs):
            capture.on_llm_start(serialized, prompts, **kwargs)

    def _put(self, finished: Finished | None) -> None:
        if finished is not None:
            self._recorder.put(finished)
