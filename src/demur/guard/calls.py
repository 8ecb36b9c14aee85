"""Report a tool call that was stopped as a guarded call of its own, which rejected it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic_core import to_json

from demur.evaluators import CallGrounding, MissingValue
from demur.guard.guard import Guard
from demur.schema import Evaluation, Sample

_TOLD = """\
{tool} was not run, because its arguments have values that nobody gave:
{missing}
Take each value from what the user said or from the result of a tool. If it stands nowhere, look \
it up with a tool, or ask the user for it. Do not guess."""


def told(tool: str, missing: Sequence[MissingValue]) -> str:
    """Return what the model is told of a stopped call."""
    return _TOLD.format(tool=tool, missing="\n".join(f"- {one}" for one in missing))


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
