"""Record what one run of the guarded chain retrieves and spends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from demur.guard.events import OUTCOME, USAGE
from demur.runtime import JUDGE, is_interrupt, reply_in, reported_usage
from demur.schema import Usage
from demur.shapes import distinct


class Capture(BaseCallbackHandler):
    """Record what one run of a chain retrieves and spends, in all threads and tasks that it uses.

    Of retrievers inside retrievers, only the outermost counts: the model never saw what a
    compressor or a reranker dropped. Retrievals of an evaluator inside the chain do not count,
    because the answer was not based on them.
    """

    run_inline = True  # in the chain's own task, since a call takes microseconds

    def __init__(self) -> None:
        self._covered: set[UUID] = set()
        """The runs whose retrievals do not count, because an enclosing run's count or a judge made
        them."""
        self._retrieved: dict[UUID, Sequence[Document]] = {}
        self._started: dict[UUID, float] = {}
        self._usage: dict[UUID, Usage] = {}
        self._reported: list[Usage] = []
        self.instructions: str | None = None
        """The system message of the chain's latest call to a chat model; None if that call had
        none."""
        self.refusals: set[str] = set()
        """The refusals that guards inside the chain put in the place of answers."""
        self.namespace: str | None = None
        """LangGraph's namespace for the node in which the guard runs; None outside of a graph."""
        self._tasks: set[UUID] = set()
        """The runs in graphs inside the chain."""
        self._interrupted = False

    def is_interrupt_inside(self, error: BaseException) -> bool:
        """Return whether an exception is an interrupt that comes from a graph inside the chain."""
        return self._interrupted and is_interrupt(error)

    @property
    def documents(self) -> tuple[Document, ...]:
        """Return the documents of the chain's retrievers, in order and without repeats."""
        return distinct(d for documents in [*self._retrieved.values()] for d in documents)

    @property
    def usage(self) -> Usage:
        """Return what the chain's model calls cost, including failed and interrupted calls."""
        # Copy first, because a chain that is being streamed writes from another thread.
        usage = {**dict.fromkeys([*self._started], Usage(calls=1)), **dict(self._usage)}
        return sum([*usage.values(), *self._reported], Usage())

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        """Note whether the run's retrievals count, and whether it is in an inner graph."""
        self._enter(**kwargs)
        namespace = (kwargs.get("metadata") or {}).get("langgraph_checkpoint_ns")
        if namespace not in (None, self.namespace):
            self._tasks.add(kwargs["run_id"])

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Note that a graph inside the chain was interrupted."""
        if kwargs["run_id"] in self._tasks and is_interrupt(error):
            self._interrupted = True

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        """Note whether the run's retrievals count."""
        self._enter(**kwargs)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        """Reserve a place for the documents, unless an enclosing retriever has one."""
        run_id: UUID = kwargs["run_id"]
        self._enter(**kwargs)
        if run_id not in self._covered:
            self._covered.add(run_id)
            self._retrieved[run_id] = ()

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:
        """Record the documents."""
        if kwargs["run_id"] in self._retrieved:
            self._retrieved[kwargs["run_id"]] = documents

    def on_chat_model_start(
        self, serialized: Any, messages: Sequence[Sequence[BaseMessage]], **kwargs: Any
    ) -> None:
        """Count a model call that begins, and record its system message."""
        self._started[kwargs["run_id"]] = time.monotonic()
        told = [str(one.text) for one in messages[0] if one.type == "system"] if messages else []
        if JUDGE not in (kwargs.get("tags") or ()):
            self.instructions = "\n".join(told) or None

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        """Count a model call that begins."""
        self._started[kwargs["run_id"]] = time.monotonic()

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Record the usage of a model call."""
        usage = self._call(kwargs["run_id"])
        self._usage[kwargs["run_id"]] = reported_usage(reply_in(response), usage)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Record the usage of a model call that failed."""
        self._usage[kwargs["run_id"]] = self._call(kwargs["run_id"])

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Record the refusal of a guard inside the chain, or usage that the chain reports."""
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
