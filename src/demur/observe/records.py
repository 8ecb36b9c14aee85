"""Define `Record`, which holds the answers of one run and their evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from demur.guard import Attempt, Limited, Time, TraceOutcome, Verdict
from demur.observe.as_json import as_json
from demur.schema import Evaluation, Finding, ShownInNotebooks, Text, Usage


class TraceLink(BaseModel):
    """Name a run's trace in a system such as LangSmith, its span there, and the page's address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    """The system's short name, such as "langsmith"."""
    trace_id: str
    """The id of the trace."""
    span_id: str | None = None
    """The id of the run's span, run or observation in the trace; None if there is none."""
    project: Text | None = None
    """The project or experiment that has the trace; None if it is not known."""
    address: str | None = None
    """The address of the page that shows the trace; None if the system did not tell it."""


class Record(ShownInNotebooks, BaseModel):
    """Hold one run of a chain, or one call of a guard inside it, with its answers' evaluations.

    A record is frozen. It survives JSON: `Record.model_validate_json(record.as_json())`. A record
    that a sink receives holds no keys and no headers (see `demur.observe.redaction`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """The id of the chain's run, or of the guard's run."""
    root: str
    """The id of the outermost run that this run is part of; equal to `id` if it is that run."""
    time: Time
    """The time at which the run ended."""
    name: Text | None = None
    """The name of the run."""
    tags: tuple[Text, ...] = ()
    """The tags of the run."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """The metadata of the run, without entries that may be secret."""
    model: Text | None = None
    """The chat model that wrote the last reply in the run, by its provider's name for it."""
    response: Text | None = None
    """The id that the provider gave to this last reply."""
    trace_id: str | None = None
    """The trace id of the OpenTelemetry span in which the run began: 32 hexadecimal digits."""
    span_id: str | None = None
    """The id of the same span: 16 hexadecimal digits."""
    traces: tuple[TraceLink, ...] = ()
    """The traces of the run that sinks found, at most one in each system."""
    attempts: tuple[Attempt, ...] = Field(min_length=1)
    """The answers with their evaluations, at least one. A run that a handler scored has one
    attempt; a guard's call has all of its attempts."""
    outcome: TraceOutcome | None = None
    """How a guard's call ended; None if there was no guard, or if its call did not finish."""
    reason: Text | None = None
    """The reason why a guard's call ended, in a sentence."""
    error: Text | None = None
    """The error of a model that failed to repair an answer, if there was one."""
    limit: Limited | None = None
    """The limit of a guard's budget that ended its call, if one did."""
    usage: Usage = Usage()
    """The usage of answering and judging together."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """The duration of the run in seconds, without the scoring after it."""
    redacted: bool = False
    """Whether texts were changed before they were stored. Offsets refer to the original texts."""

    @property
    def question(self) -> str | None:
        """Return the question of the last attempt."""
        return self.attempts[-1].question

    @property
    def answer(self) -> str:
        """Return the answer of the last attempt."""
        return self.attempts[-1].answer

    @property
    def contexts(self) -> tuple[Document, ...]:
        """Return the contexts that the last answer was judged against."""
        return self.attempts[-1].contexts

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the last answer."""
        return self.attempts[-1].verdict

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the evaluations of the last answer."""
        return self.attempts[-1].evaluations

    def judged(self) -> Iterator[tuple[int, Evaluation]]:
        """Yield every evaluation with the number of its attempt, which counts from 1."""
        for number, attempt in enumerate(self.attempts, start=1):
            for evaluation in attempt.evaluations:
                yield number, evaluation

    def as_json(self) -> str:
        """Return one line of JSON; values in documents that JSON cannot hold become strings."""
        return as_json(self)


WORST_FIRST: tuple[Finding, ...] = (
    "failed",
    "undetermined",
    "passed",
    "scored",
    "nothing_to_check",
)
"""The findings, worst first. If an evaluator judged sentence by sentence, the worst one counts."""


def moment(time: datetime) -> str:
    """Return a time as a log stores it: in UTC with microseconds, so that texts sort by time."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
