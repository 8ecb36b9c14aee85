"""Whether what runs is a judge: what judges ask and answer is no answer to anyone's question.

What judges spend is told with what they find, so no meter of an engine around them counts it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from llama_index.core.evaluation import BaseEvaluator

from llama_index.evaluation.demur._metering import unmetered

_judging: ContextVar[bool] = ContextVar("demur_judging", default=False)


def is_judging() -> bool:
    """Whether a judge is at work in this context."""
    return _judging.get()


def is_evaluating() -> bool:
    """Whether an evaluator of LlamaIndex's asks: some query an engine that they make of contexts.

    LlamaIndex tells of no evaluation, so that only the stack knows.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        evaluates = frame.f_code.co_name in ("evaluate", "aevaluate")
        if evaluates and isinstance(frame.f_locals.get("self"), BaseEvaluator):
            return True
        frame = frame.f_back
    return False


@contextmanager
def while_judging() -> Iterator[None]:
    """Have event handlers leave out what happens in the block, and in what it sets off."""
    token = _judging.set(True)
    try:
        with unmetered():
            yield
    finally:
        _judging.reset(token)
