"""Score answers in a worker of the cluster."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demur import DemurError, Evaluation, Sample, Usage, __version__
from demur.evaluators import FEWL
from demur.runtime import bound_endpoints, describe
from demur.scoring import Scorers
from demur_ray import _sending


@dataclass(frozen=True)
class Begun:
    """Describe a worker that can score."""

    settings: Mapping[str, Any]
    """What its scores depend on, by the evaluators' names, as values of JSON."""
    asks_beforehand: bool
    """Whether reference models are to be asked about all questions first."""
    version: str
    """The versions of demur and of Python."""


@dataclass(frozen=True)
class Refused:
    """Say why a worker cannot score.

    It is returned and not raised, because Ray adds the stack to an error's message.
    """

    why: str


@dataclass(frozen=True)
class Asked:
    """Report how the reference models of all evaluators were asked about a question."""

    error: str | None
    """Why the reference models cannot answer it; None if they can."""
    usage: Usage


def version() -> str:
    """Return the versions of demur and Python, which the driver and all workers must share."""
    return f"demur {__version__}, Python {sys.version_info.major}.{sys.version_info.minor}"


class Worker:
    """Score answers as a Ray actor.

    An actor that Ray has restarted has no evaluators until `begin` is called again. The evaluators
    come by this call and not with the actor, because Ray's control service keeps what an actor is
    made of, and the evaluators may hold keys.
    """

    def __init__(self) -> None:
        self._scorers: Scorers | None = None
        self._fewls: list[FEWL] = []
        self._begun: Begun | None = None
        self._beginning = threading.Lock()

    def begin(self, sent: bytes, environment: Mapping[str, str], share: int) -> Begun | Refused:
        """Take the evaluators; only the first call has an effect.

        Args:
            sent: The evaluators, as `_sending.sent` returns them.
            environment: Environment variables to set in this process.
            share: The most requests that this worker may have at one endpoint at a time.
        """
        with self._beginning:
            if self._begun is None:
                try:
                    self._begun = self._begin(sent, environment, share)
                except Exception as error:
                    why = str(error) if isinstance(error, DemurError) else describe(error)
                    return Refused(f"the evaluators cannot be made in a worker: {why}")
            return self._begun

    def _begin(self, sent: bytes, environment: Mapping[str, str], share: int) -> Begun:
        os.environ.update(environment)
        bound_endpoints(share)
        evaluators = _sending.received(sent)
        self._fewls = _sending.fewls(evaluators)
        self._scorers = Scorers(evaluators)
        return Begun(_sending.described(evaluators), bool(self._fewls), version())

    def score(self, name: str, sample: Sample) -> Evaluation | Refused | None:
        """Return an evaluator's evaluation of a sample, or None if the worker has not begun."""
        if self._scorers is None:
            return None
        try:
            return self._scorers.score(name, sample)
        except DemurError as error:
            return Refused(str(error))

    def learn(self, question: str) -> Asked | Refused | None:
        """Have the reference models asked about a question, unless they have answered it before.

        Returns:
            What was asked, or None if the worker has not begun.
        """
        if self._scorers is None:
            return None
        error, usage = None, Usage()
        try:
            for fewl in self._fewls:
                fitted = fewl.fit([question], pairs=True)
                usage += fitted.usage
                error = error or next((why for _, why in fitted.failed), None)
        except DemurError as failed:
            return Refused(str(failed))
        return Asked(error, usage)
