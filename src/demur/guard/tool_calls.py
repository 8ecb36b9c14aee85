"""Stop a tool call with values that nobody gave, and report it as a guarded call of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic_core import to_json

from demur.evaluators import CallGrounding, missing_values
from demur.guard.guard import Guard
from demur.schema import Evaluation, Sample
from demur.shapes import given_texts

_TOLD = """\
{tool} was not run, because its arguments have values that nobody gave:
{missing}
Take each value from what the user said or from the result of a tool. If it stands nowhere, look \
it up with a tool, or ask the user for it. Do not guess."""


@dataclass(frozen=True)
class StoppedCall:
    """Hold a call that must not run."""

    text: str
    """What the model is told."""
    guard: Guard[None, Any]
    """What tells callbacks: it is run with None, and raises `AnswerRejected` with the trace."""


@dataclass(frozen=True)
class CallCheck:
    """Check calls before they run; `missing_values` and `given_texts` describe the fields."""

    untrusted: Collection[str] = ()
    checked: Mapping[str, bool] = field(default_factory=dict)
    today: Callable[[], date] = date.today

    def stopped(
        self,
        call: Mapping[str, Any],
        schema: Mapping[str, Any],
        messages: Sequence[BaseMessage],
        known: Sequence[str],
    ) -> StoppedCall | None:
        """Return the call, which has `name` and `args`, if it must not run; else None."""
        said = (str(one.text) for one in reversed(messages) if isinstance(one, HumanMessage))
        question, today = next(said, ""), self.today()
        known = (known,) if isinstance(known, str) else known
        texts = (*given_texts(messages, untrusted=self.untrusted), *known)
        asked: Any = {"checked": self.checked, "today": today, "question": question}
        missing = missing_values(call, schema, texts, **asked)
        if not missing:
            return None
        sample = Sample(
            question=question,
            answer=to_json({"name": call["name"], "args": call["args"]}, fallback=str).decode(),
            contexts=tuple(map(Document, texts)),
            metadata={"schema": schema, "today": today},
        )
        found = {"call": sample.answer, "given": sample.contexts}
        evaluator = CallGrounding(checked=self.checked)
        judge: Runnable[Sample, Evaluation] = RunnableLambda(lambda _: evaluator.invoke(sample))
        guard: Guard[None, Any] = Guard(
            RunnableLambda(lambda _: found, name="demur:call"),
            judge,
            answer="call",
            contexts="given",
            question=lambda _: question,
            on_fail="block",
        )
        listed = "\n".join(f"- {one}" for one in missing)
        return StoppedCall(_TOLD.format(tool=call["name"], missing=listed), guard)
