"""Record: what is kept of one run, its answers and what was found of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from demur._notebook import ShownInNotebooks
from demur.guard import Attempt, Limited, Time, TraceOutcome, Verdict
from demur.observe.writing import as_json
from demur.schema import Evaluation, Finding, Text, Usage


class Record(ShownInNotebooks, BaseModel):
    """One run of a chain, or one call of a guard inside it, with what was found of its answers.

    Frozen, and survives JSON: `Record.model_validate_json(record.as_json())`. It holds no key and
    no header: see `demur.observe.redaction`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """The run's id: that of the chain's run, or of the guard's."""
    root: str
    """The id of the outermost run that it belongs to; its own if it is that itself."""
    time: Time
    """When the run ended."""
    name: Text | None = None
    """The run's name."""
    tags: tuple[Text, ...] = ()
    """The run's tags."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """The run's metadata, without what may be a secret."""
    model: Text | None = None
    """The chat model that wrote last in the run, as its provider calls it."""
    response: Text | None = None
    """The id that the provider gave to what it wrote."""
    trace_id: str | None = None
    """Of the OpenTelemetry span in which the run began: 32 hexadecimal digits."""
    span_id: str | None = None
    """Of the same span: 16 hexadecimal digits."""
    attempts: tuple[Attempt, ...] = Field(min_length=1)
    """The answers with their evaluations, at least one: of a run that was scored one, of a guard's
    all of its attempts."""
    outcome: TraceOutcome | None = None
    """How a guard's call ended; None where no guard was, or where it did not come to its end."""
    reason: Text | None = None
    """What ended a guard's call, in a sentence."""
    error: Text | None = None
    """If a model failed to repair an answer, what that said."""
    limit: Limited | None = None
    """The limit of a guard's budget that ended its call, if one did."""
    usage: Usage = Usage()
    """What answering and judging cost together."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """How long the run took, without what was scored after it."""
    redacted: bool = False
    """Whether texts were changed before they were kept. Offsets are those in the original texts."""

    @property
    def question(self) -> str | None:
        """The question."""
        return self.attempts[-1].question

    @property
    def answer(self) -> str:
        """The last answer."""
        return self.attempts[-1].answer

    @property
    def contexts(self) -> tuple[Document, ...]:
        """What the last answer was held against."""
        return self.attempts[-1].contexts

    @property
    def verdict(self) -> Verdict:
        """The verdict on the last answer."""
        return self.attempts[-1].verdict

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """What was found of the last answer."""
        return self.attempts[-1].evaluations

    def judged(self) -> Iterator[tuple[int, Evaluation]]:
        """Every evaluation, with the number of its attempt, from 1."""
        for number, attempt in enumerate(self.attempts, start=1):
            for evaluation in attempt.evaluations:
                yield number, evaluation

    def as_json(self) -> str:
        """The record on one line of JSON; what JSON cannot hold (in documents) as a string."""
        return as_json(self)


WORST_FIRST: tuple[Finding, ...] = (
    "failed",
    "undetermined",
    "passed",
    "scored",
    "nothing_to_check",
)
"""Of what an evaluator says of an answer, sentence by sentence, the first one of these counts."""


def moment(time: datetime) -> str:
    """A time as a log holds it: UTC, with microseconds, so that text sorts as time does."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
