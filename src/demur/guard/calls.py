"""Report a tool call that was stopped as a guarded call of its own, which rejected it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic_core import to_json

from demur.evaluators import CallGrounding
from demur.guard.guard import Guard
from demur.schema import Evaluation, Sample


def stopping(
    call: Mapping[str, Any],
    schema: Mapping[str, Any],
    texts: Sequence[str],
    evaluator: CallGrounding,
    today: date,
    question: str,
) -> Guard[None, Any]:
    """Return a guard that rejects a call with missing values, and tells callbacks of it.

    It is run with None, and raises `AnswerRejected` with the trace. The arguments are those of
    `missing_values`, with the evaluator in place of `checked`.
    """
    sample = Sample(
        question=question,
        answer=to_json({"name": call["name"], "args": call["args"]}, fallback=str).decode(),
        contexts=tuple(map(Document, texts)),
        metadata={"schema": schema, "today": today},
    )
    found = {"call": sample.answer, "given": sample.contexts}
    judge: Runnable[Sample, Evaluation] = RunnableLambda(lambda _: evaluator.invoke(sample))
    return Guard(
        RunnableLambda(lambda _: found, name="demur:call"),
        judge,
        answer="call",
        contexts="given",
        question=lambda _: question,
        on_fail="block",
    )
