"""Workers on a cluster, and who gets the next answer.

An answer is one call, and its evaluation comes back as soon as it is there, so that a worker that
is killed takes nothing with it but what was under way in it. What is bounded is bounded here, by
numbers that never change: each worker has its share of the answers and requests at a time, and
none of it is lent, so a dead worker holds nothing that others wait for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import ray
from ray.exceptions import (
    ActorDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
)

from demur import DemurError, Evaluation, Sample, Usage
from demur.evaluators import Fitted
from demur.runtime import as_completed, in_background
from demur_ray import _sending
from demur_ray._worker import Asked, Begun, Refused, Worker, version

_TRIES = 3
"""How many workers may die of an answer. With the last of them it is alone, so that no other is
taken for what killed it."""
_PAUSE = 0.3
_STARTS = 20
"""How often a worker that Ray calls dead is asked again, with the pause between."""
_HEARD_SECONDS = 0.5
_LOST = (RayActorError, ObjectLostError, OutOfMemoryError)
_SPARE_THREADS = 1
"""Of an actor, beside those that score: it can begin at any time."""


@dataclass(eq=False)
class _Place:
    """A worker as the driver knows it."""

    actor: Any
    share: int
    """Answers at a time, and requests to one endpoint."""
    busy: int = 0
    up: bool = False
    reserved: bool = False
    """Whether somebody waits until nothing else is at work there."""
    gone: bool = False


@dataclass(frozen=True)
class _Remote:
    """An evaluator that scores on the cluster."""

    pool: Pool
    name: str

    def invoke(self, input: Sample, /) -> Evaluation:
        """Score an answer there."""
        return self.pool.score(self.name, input)


class Pool:
    """Workers with the same evaluators. A context manager; for any number of threads.

    Args:
        given: The evaluators, or a function that makes them in each worker.
        at_once: Answers under way at a time, and requests to one endpoint, in all workers together;
            at least 1.
        workers: How many processes; None: as many as the cluster has CPUs for. Never more than
            `at_once`.
        num_cpus: CPUs that Ray reserves for each; None: none, as fits workers that wait for models.
        num_gpus: GPUs that Ray reserves for each.
        expected: What `settings` have to be; None: what the first worker says.
        spare_cpus: CPUs of the cluster that are left to others, where workers reserve any.

    Raises:
        ValueError: A number is out of its range, or the cluster has too few CPUs.
        TypeError, DemurError: The evaluators cannot be sent, or not be had by a worker.
    """

    def __init__(
        self,
        given: _sending.Given,
        at_once: int,
        workers: int | None = None,
        num_cpus: float | None = None,
        num_gpus: float = 0,
        expected: Mapping[str, Any] | None = None,
        spare_cpus: float = 0,
    ) -> None:
        if at_once < 1:
            raise ValueError(f"max_concurrency must be at least 1, got {at_once}")
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._sent = _sending.sent(given)
        self._changed = threading.Condition()
        self._error: str | None = None
        self._begun: Begun | None = None
        self._expected = expected
        self._closed = False
        count = min(at_once, _count(workers, num_cpus, spare_cpus))
        shares = [at_once // count + (at < at_once % count) for at in range(count)]
        self._places = [_Place(_actor(share, num_cpus, num_gpus), share) for share in shares]
        for place in self._places:
            in_background(partial(self._begin, place))

    def __enter__(self) -> Pool:
        try:
            with self._changed:
                while self._begun is None and self._error is None:
                    self._changed.wait(_HEARD_SECONDS)
            self._check()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and leave what is under way there."""
        self._closed = True
        self._fail("the workers were ended")  # which those hear who wait for one
        for place in self._places:
            with contextlib.suppress(RayError):
                ray.kill(place.actor)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What tells how the evaluators score, by their names, as JSON."""
        return {} if self._begun is None else self._begun.settings

    @property
    def asks_beforehand(self) -> bool:
        """Whether there are references to be asked about all questions first."""
        return self._begun is not None and self._begun.asks_beforehand

    @property
    def scorers(self) -> Mapping[str, _Remote]:
        """The evaluators, each of which scores on the cluster."""
        return {name: _Remote(self, name) for name in self.settings}

    # --- What is asked of workers -----------------------------------------------------------------

    def score(self, name: str, sample: Sample) -> Evaluation:
        """What an evaluator finds of an answer; undetermined where workers die of it.

        Raises:
            DemurError: No worker can score.
        """
        found: Evaluation | None = self._asked("score", name, sample)
        if found is not None:
            return found
        why = f"{_TRIES} workers died while they scored it, the last one while it did nothing else"
        return Evaluation(name=name, error=why, explanation=why, cause="workers died")

    def prepare(
        self, total: int, questions: Iterable[str], *, progress: Callable[[Fitted], None]
    ) -> Fitted:
        """Have references asked about questions before the first answer is scored.

        Args:
            total: How many questions there are.
            questions: Taken one by one, as workers have room. Known ones cost nothing, and blank
                ones are left out: their answers are undetermined.
            progress: Told after each.

        Raises:
            DemurError: No worker can ask.
        """
        now = Fitted(total)
        at_once = sum(place.share for place in self._places)
        stated = (question for question in questions if question.strip())
        for question, asked in as_completed(self._learn, stated, at_once):
            failed = () if asked.error is None else ((question, asked.error),)
            now = replace(
                now,
                done=now.done + (not failed),
                failed=(*now.failed, *failed),
                usage=now.usage + asked.usage,
            )
            progress(now)
        return now

    def _learn(self, question: str) -> tuple[str, Asked]:
        asked: Asked | None = self._asked("learn", question)
        return question, asked or Asked(f"{_TRIES} workers died while they asked", Usage())

    def _asked(self, method: str, *arguments: object) -> Any:
        """What a worker returns; None if as many died of it as may."""
        died = 0
        while died < _TRIES:
            with self._place(alone=died == _TRIES - 1) as place:
                try:
                    returned = ray.get(getattr(place.actor, method).remote(*arguments))
                except _LOST:
                    died += 1
                    self._lost(place)
                    continue
                except RayTaskError as error:
                    raise error.cause from None
                except RayError as error:
                    raise DemurError(f"the cluster cannot be used: {_told(error)}") from error
            if isinstance(returned, Refused):
                raise DemurError(returned.why)
            if returned is not None:
                return returned
            self._lost(place)  # it was started anew meanwhile
        return None

    # --- Places -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _place(self, alone: bool) -> Iterator[_Place]:
        with self._changed:
            place = self._reserved() if alone else self._free()
            taken = place.share if alone else 1
            place.busy += taken
        try:
            yield place
        finally:
            with self._changed:
                place.busy -= taken
                place.reserved = place.reserved and not alone
                self._changed.notify_all()

    def _free(self) -> _Place:
        """A worker that has room, of those the one that has most."""
        while True:
            self._check()
            free = [
                place
                for place in self._places
                if place.up and not place.reserved and place.busy < place.share
            ]
            if free:
                return min(free, key=lambda place: place.busy / place.share)
            self._changed.wait()

    def _reserved(self) -> _Place:
        """A worker that has nothing else to do, and gets nothing else."""
        while True:
            self._check()
            idle = [place for place in self._places if place.up and not place.reserved]
            if idle:
                place = min(idle, key=lambda place: place.busy / place.share)
                place.reserved = True
                while place.up and place.busy:
                    self._changed.wait()
                    self._check()
                if place.up:
                    return place
                place.reserved = False
            else:
                self._changed.wait()

    def _check(self) -> None:
        if self._error is not None:
            raise DemurError(self._error)

    def _lost(self, place: _Place) -> None:
        """Give a worker nothing more, until it has begun anew."""
        with self._changed:
            if not place.up:
                return
            place.up = False
        in_background(partial(self._begin, place))

    # --- Beginning --------------------------------------------------------------------------------

    def _begin(self, place: _Place) -> None:
        """Have a worker take the evaluators, as soon as Ray has it running."""
        starts = 0
        while not self._closed:
            try:
                begun = ray.get(
                    place.actor.begin.remote(self._sent, _sending.environment(), place.share)
                )
            except ActorDiedError as error:  # also told of one that will be started anew
                starts += 1
                if starts == _STARTS:
                    self._give_up(place, f"a worker cannot be started: {_told(error)}")
                    return
            except RayError:
                pass
            except Exception as error:  # of the connection to the cluster
                self._fail(f"the cluster cannot be used: {_told(error)}")
                return
            else:
                self._take(place, begun)
                return
            time.sleep(_PAUSE)

    def _take(self, place: _Place, begun: Begun | Refused) -> None:
        if isinstance(begun, Refused):
            self._fail(begun.why)
        elif begun.version != version():
            self._fail(f"a worker has {begun.version}, and {version()} is here: install the same")
        elif differing := _difference(begun.settings, self._expected or begun.settings):
            self._fail(f"a worker would score otherwise than others: {differing}")
        else:
            with self._changed:
                self._begun = self._begun or begun
                self._expected = self._expected or begun.settings
                place.up = True
                self._changed.notify_all()

    def _give_up(self, place: _Place, why: str) -> None:
        place.gone = True
        if all(place.gone for place in self._places):
            self._fail(why)

    def _fail(self, why: str) -> None:
        with self._changed:
            self._error = self._error or why
            self._changed.notify_all()


def _actor(share: int, num_cpus: float | None, num_gpus: float) -> Any:
    """A worker. Ray starts it anew whenever it dies, and tells what was under way in it as lost."""
    return (
        ray.remote(Worker)
        .options(
            max_concurrency=share + _SPARE_THREADS,
            max_restarts=-1,
            max_task_retries=0,
            # Told in any case: one that says only how many GPUs it needs reserves a CPU too.
            num_cpus=num_cpus or 0,
            num_gpus=num_gpus,
            scheduling_strategy="SPREAD",
        )
        .remote()
    )


def _count(workers: int | None, num_cpus: float | None, spare: float) -> int:
    """How many workers there are to be, of which so many CPUs are left if they reserve any."""
    cpus = float(ray.cluster_resources().get("CPU", 0))
    if not num_cpus:
        return workers or max(1, int(cpus))
    fitting = int((cpus - spare) / num_cpus)
    if spare and (workers or 1) > fitting:
        raise ValueError(
            f"num_cpus: {workers or 1} workers of {num_cpus:g} CPUs leave none of the cluster's "
            f"{cpus:g} to Ray Data, which reads the rows meanwhile: give fewer workers, or a "
            "smaller num_cpus"
        )
    return workers or max(1, fitting)


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str | None:
    """Where what two processes say of their evaluators differs."""
    for name in {**here, **there}:
        ours, theirs = here.get(name, {}), there.get(name, {})
        for key in {**ours, **theirs}:
            if ours.get(key) != theirs.get(key):
                return f"{key} of {name} is {theirs.get(key)!r}, expected {ours.get(key)!r}"
    return None


def _told(error: BaseException) -> str:
    """What Ray says of an error, in a line: of a worker that could not begin, what it died of."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = -1 if isinstance(error, ActorDiedError) else 0
    return lines[at] if lines else type(error).__name__
