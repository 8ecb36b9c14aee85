"""The callback handlers: LangChain's events in, runs to be scored out."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from typing_extensions import Self

from demur.evaluators import EvaluatorLike
from demur.guard import EVALUATION, Trace, evaluation_of_event
from demur.observe.backlog import Loop, OnFull
from demur.observe.finished import Finished
from demur.observe.outlet import SinkLike
from demur.observe.reading import Readers
from demur.observe.recorder import Recorder, RunCounts
from demur.observe.redaction import Redact
from demur.observe.runs import Runs
from demur.shapes import ContextsReader, Reader


class _Listening:
    """What both handlers do with an event, without ever waiting."""

    _is_async = False
    _runs: Runs
    _recorder: Recorder

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
        self._loops: weakref.WeakSet[Loop] = weakref.WeakSet()
        """Those that events came from, of an asynchronous handler."""
        # In asyncio, in the loop's own thread and not in a task or thread for every event: it takes
        # microseconds. Only a sync handler that waits for room would hold up the loop.
        self.run_inline = self._is_async or on_full == "drop"

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

    def on_guard_end(self, trace: Trace, *, run_id: UUID) -> None:
        """Keep how a guard's call went, until its run is over."""
        self._runs.guarded(run_id, trace)

    def _chain_start(self, serialized: Any, inputs: Any, kwargs: dict[str, Any]) -> None:
        if capture := self._runs.start(inputs, answers=True, **kwargs):
            capture.on_chain_start(serialized, inputs, **kwargs)

    def _chain_end(self, outputs: Any, kwargs: dict[str, Any]) -> Finished | None:
        # Of a stream LangChain gives the inputs only now. One whose reader left has no output yet,
        # or has all but the chunk that was read last.
        if outputs is None and "inputs" in kwargs:
            return self._runs.fail(kwargs["run_id"])
        return self._runs.end(kwargs["run_id"], outputs, kwargs.get("inputs"))

    def _tool_start(self, serialized: Any, input_str: str, kwargs: dict[str, Any]) -> None:
        if capture := self._runs.start(input_str, answers=False, **kwargs):
            capture.on_tool_start(serialized, input_str, **kwargs)

    def _retriever_start(self, serialized: Any, query: str, kwargs: dict[str, Any]) -> None:
        if capture := self._runs.start(query, answers=False, **kwargs):
            capture.on_retriever_start(serialized, query, **kwargs)

    def _retriever_end(self, documents: Sequence[Document], kwargs: dict[str, Any]) -> None:
        if capture := self._runs.capture(kwargs["run_id"]):
            capture.on_retriever_end(documents, **kwargs)
        self._runs.end(kwargs["run_id"], documents)

    def _model_start(self, serialized: Any, prompts: Any, kwargs: dict[str, Any]) -> None:
        if capture := self._runs.start(next(iter(prompts), ""), answers=True, **kwargs):
            capture.on_llm_start(serialized, prompts, **kwargs)

    def _model_end(self, response: LLMResult, kwargs: dict[str, Any]) -> Finished | None:
        run_id: UUID = kwargs["run_id"]
        if capture := self._runs.capture(run_id):
            capture.on_llm_end(response, **kwargs)
            self._runs.wrote(run_id, response)
        first = next(
            (generation for several in response.generations for generation in several), None
        )
        output = first.message if isinstance(first, ChatGeneration) else getattr(first, "text", "")
        return self._runs.end(run_id, output)

    def _model_error(self, error: BaseException, kwargs: dict[str, Any]) -> Finished | None:
        if capture := self._runs.capture(kwargs["run_id"]):
            capture.on_llm_error(error, **kwargs)
        return self._runs.fail(kwargs["run_id"], error)

    def _event(self, name: str, data: Any, run_id: UUID) -> None:
        if name == EVALUATION:
            self._runs.evaluated(run_id, data["attempt"], evaluation_of_event(data))


class ScoreCallbackHandler(_Listening, BaseCallbackHandler):
    """Score the answers of a chain in the background, and write down what is found.

    Attach it to a chain, and nothing else changes: the handler notes question, contexts and answer
    of every outermost run, and threads of its own have them scored. It never raises into the chain
    and, with `on_full="drop"`, never holds it up. What a `Guard` in the chain finds is written down
    as the guard found it, and is not scored again.

    Where question, answer and contexts are found is what `Guard` says; of an agent, whose output is
    messages, the last that the model wrote is the answer, and what its tools returned are the
    contexts. A run whose answer cannot be found is recorded as undetermined, with the reason.

    Example:
        >>> handler = ScoreCallbackHandler(RefChecker("openai:gpt-4o-mini"), sink="scores.sqlite")
        >>> chain.invoke("How tall is the tower?", config={"callbacks": [handler]})
        >>> handler.flush(60)

    Args:
        evaluators: What `Guard` takes, with a threshold or without. With none, only what guards
            find is recorded.
        sink: Where records go: a path that ends in `.sqlite`, `.sqlite3`, `.db`, `.jsonl` or
            `.ndjson`; a `demur.observe.Sink`, or an object with `write(record)`; a function of a
            `demur.observe.Record`; or several of these in a list.
        sample_rate: The share of runs to record, in [0, 1]. Which ones is decided by the run's id,
            so that all handlers choose the same.
        max_queue: How many runs may wait to be scored, at least 1.
        on_full: What becomes of a run for which there is no room: "drop", it is counted and not
            scored; "block", the chain waits. In asyncio, waiting needs a thread for each event, so
            use `AsyncScoreCallbackHandler` there.
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
        fallback: The file for records that a sink does not take; None for a new one in the system's
            temporary folder when it is needed.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: An evaluator or a sink is none, or what says where something is is neither a key
            nor a function.
        DemurError: A sink's file cannot be used.
        MissingExtraError: What a sink needs is not installed.
    """

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

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """A chain begins."""
        self._chain_start(serialized, inputs, kwargs)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """A chain has its output."""
        self._put(self._chain_end(outputs, kwargs))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """A chain raised, or was stopped."""
        self._put(self._runs.fail(kwargs["run_id"], error))

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """A tool begins."""
        self._tool_start(serialized, input_str, kwargs)

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """A tool has its output."""
        self._runs.end(kwargs["run_id"], output)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """A tool raised."""
        self._runs.fail(kwargs["run_id"], error)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """A retriever begins."""
        self._retriever_start(serialized, query, kwargs)

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """A retriever has its documents."""
        self._retriever_end(documents, kwargs)

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
        self._put(self._model_end(response, kwargs))

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A model raised."""
        self._put(self._model_error(error, kwargs))

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """A guard tells what it found."""
        self._event(name, data, kwargs["run_id"])

    def _put(self, finished: Finished | None) -> None:
        if finished is not None:
            self._recorder.put(finished)


class AsyncScoreCallbackHandler(_Listening, AsyncCallbackHandler):
    """As `ScoreCallbackHandler`, for asyncio: answers are scored by tasks of the chain's own loop.

    With `on_full="block"` a chain waits without holding up its loop. When the loop ends before all
    is scored, threads do the rest.

    Args and errors are those of `ScoreCallbackHandler`.

    Example:
        >>> handler = AsyncScoreCallbackHandler(RefChecker(model), sink="scores.sqlite")
        >>> await chain.ainvoke("How tall is the tower?", config={"callbacks": [handler]})
        >>> await handler.flush(60)
    """

    _is_async = True

    async def flush(self, timeout: float | None = None) -> bool:
        """As `ScoreCallbackHandler.flush`."""
        return await self._recorder.aflush(timeout)

    async def close(self, timeout: float | None = None) -> bool:
        """As `ScoreCallbackHandler.close`."""
        return await self._recorder.aclose(timeout)

    async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """A chain begins."""
        self._note_loop()
        self._chain_start(serialized, inputs, kwargs)

    async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """A chain has its output."""
        await self._aput(self._chain_end(outputs, kwargs))

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """A chain raised, or was stopped."""
        await self._aput(self._runs.fail(kwargs["run_id"], error))

    async def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """A tool begins."""
        self._tool_start(serialized, input_str, kwargs)

    async def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """A tool has its output."""
        self._runs.end(kwargs["run_id"], output)

    async def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """A tool raised."""
        self._runs.fail(kwargs["run_id"], error)

    async def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """A retriever begins."""
        self._retriever_start(serialized, query, kwargs)

    async def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """A retriever has its documents."""
        self._retriever_end(documents, kwargs)

    async def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        """A retriever raised."""
        self._runs.fail(kwargs["run_id"], error)

    async def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """A chat model begins."""
        self._note_loop()
        self._model_start(serialized, messages, kwargs)

    async def on_llm_start(self, serialized: Any, prompts: list[str], **kwargs: Any) -> None:
        """A text model begins."""
        self._note_loop()
        self._model_start(serialized, prompts, kwargs)

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """A model has its reply."""
        await self._aput(self._model_end(response, kwargs))

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A model raised."""
        await self._aput(self._model_error(error, kwargs))

    async def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """A guard tells what it found."""
        self._event(name, data, kwargs["run_id"])

    def _note_loop(self) -> None:
        self._loops.add(asyncio.get_running_loop())

    async def _aput(self, finished: Finished | None) -> None:
        if finished is None:
            return
        # In a sync chain LangChain makes a loop for each event, and waits for all of its tasks. A
        # loop that is met again is the application's.
        loop = asyncio.get_running_loop()
        await self._recorder.aput(finished, loop if loop in self._loops else None)
