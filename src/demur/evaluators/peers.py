"""Ask evaluators of openevals and metrics of ragas about a `Sample`.

demur recognises them by their shape and imports neither library, since a program that has such an
object has imported its library already.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from demur.schema import Sample


class SingleTurnMetric(Protocol):
    """Describe a metric of ragas that scores a `SingleTurnSample`, as in `ragas.metrics`."""

    name: str

    def single_turn_ascore(self, sample: Any) -> Awaitable[Any]:
        """Return the score of a sample."""
        ...


class NamedMetric(Protocol):
    """Describe a metric of ragas that takes what it scores as named arguments.

    The metrics of `ragas.metrics.collections` are such metrics.
    """

    name: str

    @property
    def ascore(self) -> Callable[..., Awaitable[Any]]:
        """Return the function that scores named arguments; its result has `value` and `reason`."""
        ...


Metric: TypeAlias = SingleTurnMetric | NamedMetric


@dataclass(frozen=True)
class Opinion:
    """Hold the result of a judge of another library."""

    value: object
    """The judge's score or decision, or None if it has none."""
    why: str = ""
    """The judge's own explanation."""


def peer(judge: Any) -> Callable[[Sample], Any] | None:
    """Return a judge of another library as a function from `Sample` to `Opinion`, sync or async.

    Args:
        judge: Any object. An evaluator of openevals is a function with a keyword-only argument
            `outputs`. A metric of ragas has a method `single_turn_ascore` or `ascore`.

    Returns:
        The function, or None if `judge` is no such judge.

    Raises:
        TypeError: The judge needs something that a `Sample` does not have.
    """
    if callable(getattr(judge, "single_turn_ascore", None)):
        required = tuple(judge.required_columns.get("SINGLE_TURN", ()))
        _refuse_unknown(judge.name, required, _RAGAS)
        return partial(_ask_single_turn_metric, judge, required)
    if callable(getattr(judge, "ascore", None)):
        parameters = inspect.signature(judge.ascore).parameters
        _refuse_unknown(judge.name, required_arguments(parameters), _RAGAS)
        if not any(name in parameters for name in _RAGAS):
            raise TypeError(
                f"the metric {judge.name} names none of the arguments that demur can give it, "
                f"{', '.join(_RAGAS)}: give a function, lambda sample: "
                f"{judge.name}.score(response=sample.answer, ...).value"
            )
        return partial(_ask_named_metric, judge)
    if _is_of_openevals(judge):
        parameters = inspect.signature(judge).parameters
        _refuse_unknown(_name(judge), required_arguments(parameters), _OPENEVALS)
        awaits = inspect.iscoroutinefunction(judge)
        return partial(_aask_openevals if awaits else _ask_openevals, judge)
    return None


# --- openevals -----------------------------------------------------------------------------------

_OPENEVALS: dict[str, Callable[[Sample], Any]] = {
    "inputs": lambda sample: sample.question,
    "outputs": lambda sample: sample.answer,
    "reference_outputs": lambda sample: sample.reference,
    "context": lambda sample: "\n\n".join(_texts(sample)),
}


def _is_of_openevals(judge: Any) -> bool:
    try:
        outputs = inspect.signature(judge).parameters.get("outputs")
    except (TypeError, ValueError):  # it is not callable, or has no signature
        return False
    return outputs is not None and outputs.kind is inspect.Parameter.KEYWORD_ONLY


def _ask_openevals(judge: Callable[..., Any], sample: Sample) -> object:
    arguments = _arguments(judge, _OPENEVALS, sample)
    return arguments if isinstance(arguments, Opinion) else _scored(judge(**arguments))


async def _aask_openevals(judge: Callable[..., Any], sample: Sample) -> object:
    arguments = _arguments(judge, _OPENEVALS, sample)
    return arguments if isinstance(arguments, Opinion) else _scored(await judge(**arguments))


def _scored(result: Any) -> object:
    if isinstance(result, Mapping) and "score" in result:
        return Opinion(result["score"], result.get("comment") or "")
    return result  # the reader of the result refuses an unknown form


# --- ragas ---------------------------------------------------------------------------------------

_RAGAS: dict[str, Callable[[Sample], Any]] = {
    "user_input": lambda sample: sample.question,
    "response": lambda sample: sample.answer,
    "retrieved_contexts": lambda sample: _texts(sample),
    "reference": lambda sample: sample.reference,
}


async def _ask_single_turn_metric(
    metric: SingleTurnMetric, required: Iterable[str], sample: Sample
) -> object:
    values = _present(_RAGAS, sample)
    if missing := [name for name in required if name not in values]:
        return _lacking(missing)
    # The metric's own library is imported, so it has the class.
    kind = sys.modules["ragas.dataset_schema"].SingleTurnSample
    return _valued(await metric.single_turn_ascore(kind(**values)))


async def _ask_named_metric(metric: NamedMetric, sample: Sample) -> object:
    arguments = _arguments(metric.ascore, _RAGAS, sample)
    return (
        arguments if isinstance(arguments, Opinion) else _valued(await metric.ascore(**arguments))
    )


def _valued(result: Any) -> object:
    if hasattr(result, "value") and hasattr(result, "reason"):
        return Opinion(result.value, result.reason or "")
    return result


# --- Both ----------------------------------------------------------------------------------------


def _arguments(
    function: Callable[..., Any], known: Mapping[str, Callable[[Sample], Any]], sample: Sample
) -> dict[str, Any] | Opinion:
    """Return a call's arguments, or an opinion without value if the sample lacks one of them."""
    parameters = inspect.signature(function).parameters
    values = _present(known, sample)
    if missing := [name for name in required_arguments(parameters) if name not in values]:
        return _lacking(missing)
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return {name: value for name, value in values.items() if takes_all or name in parameters}


def _present(known: Mapping[str, Callable[[Sample], Any]], sample: Sample) -> dict[str, Any]:
    """Return the values that the sample has; an empty text or list counts as missing."""
    return {name: value for name, read in known.items() if (value := read(sample))}


def _lacking(missing: Iterable[str]) -> Opinion:
    return Opinion(None, f"it needs {', '.join(sorted(missing))}, and the sample has none")


def required_arguments(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """Return the names of the arguments that a function or class requires."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in variable
    ]


def _refuse_unknown(name: str, required: Iterable[str], known: Iterable[str]) -> None:
    if unknown := sorted({*required}.difference(known)):
        raise TypeError(
            f"{name} needs {', '.join(unknown)}, which no sample has; it can be given "
            f"{', '.join(known)}. Bind the rest with functools.partial, or give a function from "
            "Sample to a score"
        )


def _name(judge: Any) -> str:
    return getattr(judge, "__name__", type(judge).__name__)


def _texts(sample: Sample) -> list[str]:
    return [document.page_content for document in sample.contexts]
