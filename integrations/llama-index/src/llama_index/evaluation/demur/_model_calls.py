"""Models that are called while an engine answers: what that costs, and who it is that answers."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)

from demur.observe import Runs
from llama_index.evaluation.demur._spans import keep
from llama_index.evaluation.demur._usage import tokens_of

_MOST = 10_000
"""Calls under way at a time; of more, the oldest are given up."""

_call: ContextVar[str] = ContextVar("demur_scored_call", default="")
"""The span of the model call that was begun last in this context."""


class ModelCalls:
    """The calls under way. Safe in threads."""

    def __init__(self, runs: Runs) -> None:
        """`runs` has the engines' runs, and is told of the calls as runs inside them."""
        self._runs = runs
        self._open: dict[str, _Call] = {}

    def __contains__(self, span: str) -> bool:
        return span in self._open

    def __len__(self) -> int:
        return len(self._open)

    def starts(
        self, event: LLMChatStartEvent | LLMCompletionStartEvent, span: str, engine: UUID | None
    ) -> None:
        """A model is called, in the run of an engine or in none."""
        around = self._open.get(_call.get())
        # A completion inside a chat is part of it, also where it is begun when the chat is read.
        if engine is None or (around is not None and around.engine == engine):
            return
        if self._runs.capture(engine) is None:  # nobody wants it
            return
        call = _Call(uuid4(), engine)
        about = {"ls_model_name": _model_in(event.model_dict)}  # as LangChain has it
        capture = self._runs.start(
            "", run_id=call.run, answers=False, parent_run_id=engine, metadata=about
        )
        if capture is not None:
            _call.set(span)
            keep(self._open, span, call, _MOST)
            capture.on_llm_start(None, [], run_id=call.run)

    def ends(self, event: LLMChatEndEvent | LLMCompletionEndEvent, span: str) -> None:
        """A model has replied."""
        call = self._open.pop(span, None)
        capture = None if call is None else self._runs.capture(call.run)
        if call is not None and capture is not None:
            result = _as_langchain(event.response)
            capture.on_llm_end(result, run_id=call.run)
            self._runs.wrote(call.run, result)
            self._runs.end(call.run, None)

    def fails(self, span: str) -> None:
        """A model raised, if this is the span of a call; or nobody read its stream to the end."""
        call = self._open.pop(span, None)
        capture = None if call is None else self._runs.capture(call.run)
        if call is not None and capture is not None:
            capture.on_llm_error(RuntimeError(), run_id=call.run)
            self._runs.fail(call.run)


@dataclass(frozen=True)
class _Call:
    run: UUID
    engine: UUID
    """The run that it is part of."""


def _model_in(told: Mapping[str, Any]) -> str | None:
    names = (told.get(key) for key in ("model", "model_name", "model_id"))
    # "unknown" is what LlamaIndex says where an LLM does not tell its name.
    return next((name for name in names if name and name != "unknown"), None)


def _as_langchain(response: ChatResponse | CompletionResponse | None) -> LLMResult:
    """What a reply tells of its tokens and its author, where LangChain has it."""
    raw = getattr(response, "raw", None)
    about = {"model_name": _get(raw, "model"), "id": _get(raw, "id")}
    message = AIMessage("", usage_metadata=tokens_of(response), response_metadata=about)
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def _get(raw: object, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)
