"""Evaluators on their way to the workers, and what has to be true of them there."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeAlias, TypeVar, cast

from ray import cloudpickle

from demur import DemurError, NeighborStore, Threshold
from demur.evaluators import FEWL, EvaluatorLike, as_evaluator
from demur.scoring import Scorer

T = TypeVar("T")

Evaluators: TypeAlias = Mapping[str, EvaluatorLike]
"""By the names that the results give them."""
Given: TypeAlias = Evaluators | Callable[[], Evaluators]

_VARIABLES = ("OPENAI_", "OLLAMA_", "DEMUR_")
_MOST_OBJECTS = 5_000
_SERVER = (
    "workers share a store only on a Chroma server. Start one (chroma run --path FOLDER) and give "
    "NeighborStore('http://host:8000')"
)


def environment() -> dict[str, str]:
    """The variables that say where models are and how they are asked, with their keys.

    They go to the workers with the evaluators, in a call and not in Ray's `runtime_env`, which is
    kept and shown.
    """
    return {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}


def sent(given: Given) -> bytes:
    """What the workers are sent to have the evaluators.

    Raises:
        TypeError, ValueError: It is nothing that evaluators can be had from.
        DemurError: They cannot be sent, or workers cannot share what they keep.
    """
    if not callable(given):
        _in_words(given)
    try:
        return cast(bytes, cloudpickle.dumps(given))
    except Exception as error:  # what pickling raises has no base
        raise DemurError(
            f"the evaluators cannot be sent to the workers ({type(error).__name__}: {error}), as "
            "chat models that are open cannot. Give models by their names, or give a function that "
            "makes the evaluators: score(dataset, lambda: {'refchecker': RefChecker(...)}, ...)"
        ) from error


def received(data: bytes) -> dict[str, Scorer]:
    """The evaluators, in a worker.

    Raises:
        TypeError, ValueError, DemurError: As `sent`; and as a function raises that makes them.
    """
    given = cloudpickle.loads(data)
    return _in_words(given() if callable(given) else given)


def _in_words(given: object) -> dict[str, Scorer]:
    """Evaluators that workers can have; else an error that says what is wrong."""
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            "evaluators: expected a mapping from names to evaluators, or a function that returns "
            f"one, got {type(given).__name__}"
        )
    for fewl in fewls(given):
        _check_store(fewl.neighbors)
    return {str(name): as_evaluator(one) for name, one in given.items()}


def _check_store(store: NeighborStore | None) -> None:
    if store is None:
        raise DemurError(f"FEWL without neighbors keeps what it asked in its process: {_SERVER}")
    try:
        _, (path, *_) = store.__reduce__()
    except TypeError:
        raise DemurError(f"{store} lives in one process: {_SERVER}") from None
    if "://" not in str(path):
        raise DemurError(f"{store} is a folder, which one process can open at a time: {_SERVER}")


def fewls(evaluators: object) -> list[FEWL]:
    """Every FEWL among evaluators, and inside of them."""
    return [*_held(evaluators, FEWL)]


def described(evaluators: Mapping[str, Any]) -> dict[str, Any]:
    """What tells how evaluators score, as JSON."""
    return {
        name: {
            "evaluator": f"{type(one).__name__} {one.get_name()}",
            "threshold": _plain(getattr(one, "threshold", None)),
            **getattr(one, "fingerprints", {}),
        }
        for name, one in evaluators.items()
    }


def _plain(threshold: Any) -> Any:
    return threshold.model_dump(mode="json") if isinstance(threshold, Threshold) else threshold


def _held(owner: object, kind: type[T]) -> Iterator[T]:
    """The objects of a kind in an object, in what it holds, and in what that holds."""
    seen: dict[int, object] = {}  # keeps what it has seen, so that no id comes twice
    queue = deque([owner])
    while queue and len(seen) < _MOST_OBJECTS:
        value = queue.popleft()
        if id(value) in seen or isinstance(value, (type, ModuleType, str, bytes, int, float)):
            continue
        seen[id(value)] = value
        if isinstance(value, kind):
            yield value
        queue.extend(_parts(value))


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    fields = (getattr(value, name, None) for name in ("__dict__", "__pydantic_private__"))
    return [part for held in fields if isinstance(held, dict) for part in held.values()]
