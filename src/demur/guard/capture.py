"""What a wrapped chain did, as its callbacks tell: what it retrieved, and what it spent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.outputs import ChatGeneration, LLMResult

from demur.guard.events import OUTCOME, USAGE
from demur.runtime import JUDGE, is_interrupt, reported_usage
from demur.schema import Usage


class Capture(BaseCallbackHandler):
    """Listens to one run of a chain, in whatever threads and tasks the chain makes.

    Of retrievers inside retrievers only the outermost counts: what a compressor or a reranker
    dropped never reached the model. What an evaluator inside the chain retrieved does not count: it
    is not what the answer was given from.
    """

    run_inline = True  # in a chain's own task; it takes microseconds

    def __init__(self) -> None:
        self._covered: set[UUID] = set()
        """Runs whose retrievals do not count, since an enclosing run's do, or a judge made them."""
        self._retrieved: dict[UUID, Sequence[Document]] = {}
        self._started: dict[UUID, float] = {}
        self._usage: dict[UUID, Usage] = {}
        self._reported: list[Usage] = []
        self.refusals: set[str] = set()
        """What guards inside the chain put in the place of answers."""
        self.namespace: str | None = None
        """langgraph's for the node in which the guard runs; None outside of a graph."""
        self._tasks: set[UUID] = set()
        """Runs in graphs inside the chain."""
        self._interrupted = False

    def is_interrupt_inside(self, error: BaseException) -> bool:
        """Whether an exception interrupts the graph around the chain out of a graph inside."""
        return self._interrupted and is_interrupt(error)

    @property
    def documents(self) -> tuple[Document, ...]:
        """What the chain's retrievers returned, in the order they were asked, without repeats."""
        return distinct(d for documents in [*self._retrieved.values()] for d in documents)

    @property
    def usage(self) -> Usage:
        """What the chain's model calls cost, those included that failed or were cut short."""
        # Copies first: a chain that is being streamed writes from another thread.
        usage = {**dict.fromkeys([*self._started], Usage(calls=1)), **dict(self._usage)}
        return sum([*usage.values(), *self._reported], Usage())

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note where the run belongs."""
        self._enter(**kwargs)
        namespace = (kwargs.get("metadata") or {}).get("langgraph_checkpoint_ns")
        if namespace not in (None, self.namespace):
            self._tasks.add(kwargs["run_id"])

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Note that a graph inside the chain was interrupted."""
        if kwargs["run_id"] in self._tasks and is_interrupt(error):
            self._interrupted = True

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Note where the run belongs."""
        self._enter(**kwargs)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """Take a place for the documents, unless an enclosing retriever has one."""
        run_id: UUID = kwargs["run_id"]
        self._enter(**kwargs)
        if run_id not in self._covered:
            self._covered.add(run_id)
            self._retrieved[run_id] = ()

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """Keep the documents."""
        if kwargs["run_id"] in self._retrieved:
            self._retrieved[kwargs["run_id"]] = documents

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Begin to count a call."""
        self._started[kwargs["run_id"]] = time.monotonic()

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        """Begin to count a call."""
        self._started[kwargs["run_id"]] = time.monotonic()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count a call and its tokens."""
        generations = [generation for several in response.generations for generation in several]
        first = generations[0] if generations else None
        usage = self._call(kwargs["run_id"])
        if isinstance(first, ChatGeneration):
            usage = reported_usage(first.message, usage)
        self._usage[kwargs["run_id"]] = usage

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Count a call that failed."""
        self._usage[kwargs["run_id"]] = self._call(kwargs["run_id"])

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Keep the refusal of a guard inside the chain, and what the chain itself says it cost."""
        if name == OUTCOME and data.get("refusal") is not None:
            self.refusals.add(data["refusal"])
        elif name == USAGE:
            self._reported.append(Usage.model_validate(data))

    def _enter(
        self,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        **_: Any,
    ) -> None:
        if parent_run_id in self._covered or JUDGE in (tags or ()):
            self._covered.add(run_id)

    def _call(self, run_id: UUID) -> Usage:
        began = self._started.get(run_id)
        return Usage(calls=1, seconds=0.0 if began is None else time.monotonic() - began)


def distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """The documents in their order; of those with the same text, the first."""
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(document.page_content, document)
    return tuple(first.values())
