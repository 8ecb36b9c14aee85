"""Run workers on a cluster, and choose the worker that gets the next answer.

Each answer is a call of its own, and its evaluation comes back as soon as it is there. So a worker
that is killed loses only the answers under way in it. The limits are kept here, by numbers that
never change: each worker has a fixed share of the answers and requests at a time, and lends none of
it. So a dead worker holds nothing that others wait for.
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
"""How many workers may die while they score an answer. The last of them does nothing else, so that
no other answer is lost or blamed."""
_PAUSE = 0.3
_STARTS = 20
"""How often a worker that Ray reports as dead is asked again, with `_PAUSE` in between."""
_HEARD_SECONDS = 0.5
_LOST = (RayActorError, ObjectLostError, OutOfMemoryError)
_SPARE_THREADS = 1
"""The threads of an actor beside those that score, so that it can begin at any time."""


@dataclass(eq=False)
class _Place:
    """Hold what the driver knows of a worker."""

    actor: Any
    share: int
    """The most answers at a time, and the most requests to one endpoint at a time."""
    busy: int = 0
    up: bool = False
    reserved: bool = False
    """Whether an answer waits until nothing else runs in this worker."""
    gone: bool = False


@dataclass(frozen=True)
class _Remote:
    """Score with an evaluator on the cluster."""

    pool: Pool
    name: str

    def invoke(self, input: Sample, /) -> Evaluation:
        """Score an answer on the cluster."""
        return self.pool.score(self.name, input)


class Pool:
    """Run workers that have the same evaluators, as a context manager, for any number of threads.

    Args:
        given: The evaluators, or a function that makes them in each worker.
        at_once: The most answers under way at a time, and the most requests to one endpoint at a
            time, in all workers together; at least 1.
        workers: The number of processes, which is reduced to `at_once` if it is higher. None: as
            many as the cluster has CPUs for.
        num_cpus: The CPUs that Ray reserves for each worker. None: no CPUs, which fits workers that
            wait for models.
        num_gpus: The GPUs that Ray reserves for each worker.
        expected: The `settings` that each worker must have. None: those of the first worker.
        spare_cpus: The CPUs of the cluster that are left to others, if workers reserve CPUs.

    Raises:
        ValueError: A number is out of its range, or the cluster has too few CPUs.
        TypeError, DemurError: The evaluators cannot be sent, or a worker cannot make them.
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
        """End the workers, and give up the answers under way there."""
        self._closed = True
        self._fail("the workers were ended")  # reported to threads that wait for a worker
        for place in self._places:
            with contextlib.suppress(RayError):
                ray.kill(place.actor)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return what the scores depend on, by the evaluators' names, as values of JSON."""
        return {} if self._begun is None else self._begun.settings

    @property
    def asks_beforehand(self) -> bool:
        """Return whether reference models are to be asked about all questions first."""
        return self._begun is not None and self._begun.asks_beforehand

    @property
    def scorers(self) -> Mapping[str, _Remote]:
        """Return the evaluators by their names; each of them scores on the cluster."""
        return {name: _Remote(self, name) for name in self.settings}

    # --- Requests to workers ----------------------------------------------------------------------

    def score(self, name: str, sample: Sample) -> Evaluation:
        """Return the evaluation of an answer.

        It is undetermined if `_TRIES` workers die while they score it.

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
        """Have reference models asked about questions before the first answer is scored.

        Args:
            total: The number of questions.
            questions: The questions, taken one by one as workers have room. Known questions cost
                nothing. Blank questions are left out, because their answers are undetermined.
            progress: A function that is called after each question.

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
        """Return the reply of a worker, or None if `_TRIES` workers died on this request."""
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
            self._lost(place)  # Ray has restarted it meanwhile
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
        """Wait for a worker with room, and return the one with the lowest load."""
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
        """Wait for a worker that has nothing else to do, and return it reserved."""
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
        """Give a worker nothing more until it has begun anew."""
        with self._changed:
            if not place.up:
                return
            place.up = False
        in_background(partial(self._begin, place))

    # --- Beginning --------------------------------------------------------------------------------

    def _begin(self, place: _Place) -> None:
        """Have a worker take the evaluators as soon as Ray has started it."""
        starts = 0
        while not self._closed:
            try:
                begun = ray.get(
                    place.actor.begin.remote(self._sent, _sending.environment(), place.share)
                )
            except ActorDiedError as error:  # also raised for a worker that will be restarted
                starts += 1
                if starts == _STARTS:
                    self._give_up(place, f"a worker cannot be started: {_told(error)}")
                    return
            except RayError:
                pass
            except Exception as error:  # the connection to the cluster failed
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
            self._fail(
                f"a worker has {begun.version}, and this process has {version()}: install the same "
                "versions on every node"
            )
        elif differing := _difference(begun.settings, self._expected or begun.settings):
            self._fail(
                f"a worker's evaluators differ from the others, so that scores could not be "
                f"compared: {differing}"
            )
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
    """Start a worker.

    Ray restarts it whenever it dies, and reports its calls under way as lost.
    """
    return (
        ray.remote(Worker)
        .options(
            max_concurrency=share + _SPARE_THREADS,
            max_restarts=-1,
            max_task_retries=0,
            # Always given: an actor that names only its GPUs reserves a CPU too.
            num_cpus=num_cpus or 0,
            num_gpus=num_gpus,
            scheduling_strategy="SPREAD",
        )
        .remote()
    )


def _count(workers: int | None, num_cpus: float | None, spare: float) -> int:
    """Return the number of workers.

    Args:
        workers: The number that the user asked for.
        num_cpus: The CPUs that each worker reserves.
        spare: The CPUs that are left to others, if workers reserve CPUs.
    """
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
    """Return the first difference between the settings of two processes, in words."""
    for name in {**here, **there}:
        ours, theirs = here.get(name, {}), there.get(name, {})
        for key in {**ours, **theirs}:
            if ours.get(key) != theirs.get(key):
                return f"{key} of {name} is {theirs.get(key)!r}, expected {ours.get(key)!r}"
    return None


def _told(error: BaseException) -> str:
    """Return Ray's message about an error, in one line.

    For a worker that could not begin, the last line says why it died.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = -1 if isinstance(error, ActorDiedError) else 0
    return lines[at] if lines else type(error).__name__
