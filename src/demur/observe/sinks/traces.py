"""Define `TraceSink`, the base class of the sinks that put scores on other systems' traces."""

from __future__ import annotations

import logging
import re
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID, uuid5

from demur._system import warn_once_a_minute
from demur.observe.log.answers import judged
from demur.observe.records import Record, TraceLink
from demur.observe.sinks.base import Sink
from demur.schema import Evaluation, failure_of

_log = logging.getLogger("demur.observe")
_IDS = UUID("6f9d6f0a-6f3c-5d0c-9a57-1f0a4be1d3c7")
_LONGEST = 2000
_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class TraceScore:
    """Hold what an evaluator found about the answer of a run; the worst sentence counts."""

    id: str
    """A UUID, which is the same for a record that comes again."""
    name: str
    """The evaluator's name."""
    value: float | None
    """The score; None if the evaluation is undetermined or has no score."""
    label: str
    """The finding."""
    comment: str
    """The reason, with the claims that do not hold and their quotes; at most 2000 characters."""
    error: str | None
    """Why the evaluation is undetermined; None if it is not."""
    asked: bool
    """Whether a language model judged."""
    metadata: dict[str, Any]
    """What is known of the run and the verdict."""


class TraceSink(Sink):
    """Put the scores of a run's last answer on the run's trace in another system.

    A run without a trace there has no place for scores, which is told in a warning. The sink did
    not fail, so the record does not go to the fallback file.
    """

    system: ClassVar[str]
    """The system's short name."""
    advice: ClassVar[str]
    """What to do if runs have no trace, as a clause."""
    _asks_from = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def locate(self, run_id: UUID, beside: Sequence[Any] | None) -> TraceLink | None:
        """Return where the system has a run of LangChain, or None. It must not ask a server.

        The chain's thread calls this when the run begins (`beside` is None), when the first run
        inside begins, and when the run ends. What is found inside counts most, then the first.
        `beside` has the handlers that hear the run; it is empty if none became known to the end.
        """

    @abstractmethod
    def send(self, link: TraceLink, scores: Sequence[TraceScore], record: Record) -> None:
        """Send scores, in place of any with the same ids; raise if the server did not take all."""

    @abstractmethod
    def page(self, link: TraceLink) -> str | None:
        """Return the address of the trace's page, or None. It may ask the server, and raise."""

    def write(self, record: Record) -> None:
        """Send the scores of a record's last answer; raise if the server did not take all."""
        link = next((one for one in record.traces if one.system == self.system), None)
        if link is None:
            said = "%s: a run has no trace there, so its scores are not sent: %s"
            warn_once_a_minute(_log, self.system, said, self, self.advice)
        elif scores := scores_of(record):
            self.send(link, scores, record)

    def addressed(self, link: TraceLink) -> TraceLink:
        """Return a link with its page's address, if the server tells it; never raise.

        If it does not answer, it is not asked for a minute, since other sinks wait.
        """
        if link.system == self.system and time.monotonic() >= self._asks_from:
            try:
                return link.model_copy(update={"address": self.page(link)})
            except Exception:  # the record matters more
                self._asks_from = time.monotonic() + _PAUSE_SECONDS
        return link


def located(sinks: Iterable[TraceSink], run_id: UUID, beside: Any) -> dict[str, TraceLink]:
    """Return where a run is, by system; never raise, since that would reach the chain."""
    links = {}
    for sink in sinks:
        try:
            if link := sink.locate(run_id, beside):
                links[sink.system] = link
        except Exception as error:
            warn_once_a_minute(
                _log, f"{sink}", "%s cannot find a trace: %s", sink, type(error).__name__
            )
    return links


def without_password(url: str) -> str:
    """Return a server's URL without user and password, and without a slash at its end."""
    return re.sub("//[^/]*@", "//", url).rstrip("/")


def scores_of(record: Record) -> list[TraceScore]:
    """Return a score for each evaluator of a record's last answer."""
    number, scores = len(record.attempts), []
    about = {"run": record.id, "attempt": number, "outcome": record.outcome}
    for place, answer in enumerate(judged(record.attempts[-1]), start=1):
        worst = [part for part in answer.parts if part.finding == answer.finding]
        failures = sorted({failure.value for part in worst for failure in part.failures})
        known = {**about, "label": worst[0].label, "failures": failures}
        comment = "\n".join(map(_comment, worst))
        score = TraceScore(
            id=str(uuid5(_IDS, f"{record.id}/{number}/{place}")),
            name=answer.name,
            value=None if answer.finding == "undetermined" else answer.score,
            label=answer.finding,
            comment=comment if len(comment) <= _LONGEST else f"{comment[: _LONGEST - 1]}…",
            error=worst[0].error,
            asked=any(part.usage.calls or part.usage.cached for part in answer.parts),
            metadata={name: value for name, value in known.items() if value},
        )
        scores.append(score)
    return scores


def _comment(evaluation: Evaluation) -> str:
    wrong = tuple(one for one in evaluation.claims if failure_of(one) or one.error)
    return str(evaluation.model_copy(update={"claims": wrong}))
