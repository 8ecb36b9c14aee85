"""Make handlers that listen as in an application, and engines for them to listen to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool

from fake_llm import ScriptedLLM
from guarded_app import query_engine
from llama_index.evaluation.demur.handler import ScoreEventHandler
from support.handlers import Records
from support.rag import RIGHT

SPEECH = "Good. The Amber Tower is 84 metres tall."


@contextmanager
def added(*handlers: BaseEventHandler) -> Iterator[None]:
    """Add handlers that hear LlamaIndex while the block runs."""
    root = get_dispatcher()
    for one in handlers:
        root.add_event_handler(one)
    try:
        yield
    finally:
        for one in handlers:
            root.event_handlers[:] = [left for left in root.event_handlers if left is not one]


@contextmanager
def listening(*evaluators: Any, **options: Any) -> Iterator[tuple[ScoreEventHandler, Records]]:
    """Yield a handler that listens, and the records that it makes."""
    records = Records()
    handler = ScoreEventHandler(*evaluators, sink=records, **options)
    with added(handler):
        yield handler, records
    assert handler.close(30)


def settled(handler: ScoreEventHandler) -> bool:
    """Return whether everything is recorded, and no state of any run is kept."""
    return handler.flush(30) and not handler.counts.waiting and not handler._open


def routed(engine: Any = None) -> RouterQueryEngine:
    """Return a router whose model chooses the only engine."""
    chooses = ScriptedLLM(script=lambda *_: '[{"choice": 1, "reason": "it is the only one"}]')
    tool = QueryEngineTool.from_defaults(engine or query_engine(RIGHT), description="the tower")
    return RouterQueryEngine.from_defaults(
        [tool], llm=chooses, selector=LLMSingleSelector.from_defaults(llm=chooses)
    )
