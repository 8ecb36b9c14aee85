"""Send evaluators to the workers, and check that the workers can use them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeAlias, cast

from ray import cloudpickle

from demur import DemurError, NeighborStore, Threshold
from demur.evaluators import FEWL, EvaluatorLike, as_evaluator
from demur.scoring import Scorer

Evaluators: TypeAlias = Mapping[str, EvaluatorLike]
"""A mapping from names, which the results show, to evaluators."""
Given: TypeAlias = Evaluators | Callable[[], Evaluators]

_VARIABLES = ("OPENAI_", "OLLAMA_", "DEMUR_")
_MOST_OBJECTS = 5_000
_SERVER = (
    "workers share a store only on a Chroma server. Start one (chroma run --path FOLDER) and give "
    "NeighborStore('http://host:8000')"
)


def environment() -> dict[str, str]:
    """Return the environment variables that say where models are, and the keys to ask them.

    They go to the workers with the evaluators, in a call. Ray's `runtime_env` would keep and show
    them.
    """
    return {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}


def sent(given: Given) -> bytes:
    """Return the bytes from which a worker makes the evaluators.

    Raises:
        TypeError, ValueError: The value is not evaluators or a function that makes them.
        DemurError: The evaluators cannot be sent, or workers cannot share what they keep.
    """
    if not callable(given):
        _in_words(given)
    try:
        return cast(bytes, cloudpickle.dumps(given))
    except Exception as error:  # pickling errors have no common base
        raise DemurError(
            f"the evaluators cannot be sent to the workers ({type(error).__name__}: {error}). Chat "
            "models that hold open connections cannot be sent: give models by their names, or give "
            "a function that makes the evaluators: "
            "score(dataset, lambda: {'refchecker': RefChecker(...)}, ...)"
        ) from error


def received(data: bytes) -> dict[str, Scorer]:
    """Return the evaluators, in a worker.

    Raises:
        TypeError, ValueError, DemurError: For the same reasons as in `sent`, or because the
            function that makes the evaluators raised it.
    """
    given = cloudpickle.loads(data)
    return _in_words(given() if callable(given) else given)


def _in_words(given: object) -> dict[str, Scorer]:
    """Return evaluators that workers can use, or raise an error that says what is wrong."""
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
        raise DemurError(f"FEWL without neighbors keeps its questions in one process: {_SERVER}")
    try:
        _, (path, *_) = store.__reduce__()
    except TypeError:
        raise DemurError(f"{store} lives in one process: {_SERVER}") from None
    if "://" not in str(path):
        raise DemurError(f"{store} is a folder, which one process can open at a time: {_SERVER}")


def described(evaluators: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the scores of each evaluator depend on, as values of JSON."""
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


def fewls(evaluators: object) -> list[FEWL]:
    """Return every FEWL among the evaluators, and inside of them at any depth."""
    found: list[FEWL] = []
    seen: dict[int, object] = {}  # holds the objects, so that no id is used again
    queue = deque([evaluators])
    while queue and len(seen) < _MOST_OBJECTS:
        value = queue.popleft()
        if id(value) in seen or isinstance(value, (type, ModuleType, str, bytes, int, float)):
            continue
        seen[id(value)] = value
        if isinstance(value, FEWL):
            found.append(value)
        queue.extend(_parts(value))
    return found


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    fields = (getattr(value, name, None) for name in ("__dict__", "__pydantic_private__"))
    return [part for held in fields if isinstance(held, dict) for part in held.values()]
