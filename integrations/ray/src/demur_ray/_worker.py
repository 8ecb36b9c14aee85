"""What runs in a worker of the cluster: evaluators that score what they are sent."""

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
    """A worker that can score."""

    settings: Mapping[str, Any]
    """What tells how its evaluators score, by their names, as JSON."""
    asks_beforehand: bool
    """Whether there are references to be asked about all questions first."""
    version: str
    """Of demur and of Python."""


@dataclass(frozen=True)
class Refused:
    """Why a worker can score nothing. A value, since what Ray makes of an error has its stack."""

    why: str


@dataclass(frozen=True)
class Asked:
    """What the references of all evaluators were asked about a question."""

    error: str | None
    """Why they cannot answer it."""
    usage: Usage


def version() -> str:
    """Of demur and of Python, of which the driver and all workers have to have the same."""
    return f"demur {__version__}, Python {sys.version_info.major}.{sys.version_info.minor}"


class Worker:
    """An actor. One that was started anew by Ray has no evaluators, until `begin` is called again.

    They come by a call and not with the actor itself, since Ray's control service keeps what an
    actor is made of, and there may be keys in it.
    """

    def __init__(self) -> None:
        self._scorers: Scorers | None = None
        self._fewls: list[FEWL] = []
        self._begun: Begun | None = None
        self._beginning = threading.Lock()

    def begin(self, sent: bytes, environment: Mapping[str, str], share: int) -> Begun | Refused:
        """Take the evaluators, once.

        Args:
            sent: Of `_sending.sent`.
            environment: Variables that count from now on in this process.
            share: How many requests of this worker an endpoint may have at a time.
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
        """What an evaluator finds; None of a worker that has not begun."""
        if self._scorers is None:
            return None
        try:
            return self._scorers.score(name, sample)
        except DemurError as error:
            return Refused(str(error))

    def learn(self, question: str) -> Asked | Refused | None:
        """Have the references of all evaluators asked, if they have not said what is needed."""
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
