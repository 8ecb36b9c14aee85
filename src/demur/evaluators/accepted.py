"""Make evaluators of functions and Runnables."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from numbers import Real
from typing import Any, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase, coerce_to_runnable
from pydantic import PrivateAttr

from demur._secrets import learn
from demur.errors import DemurError
from demur.evaluators.base import Evaluator, Learnt, as_sample, readable
from demur.runtime import FrozenRunnable, in_own_loop, is_retryable
from demur.schema import Evaluation, Sample, Threshold
from demur.shapes import kind_of

EvaluatorLike: TypeAlias = Runnable[Any, Any] | Callable[..., Any]
"""Anything that guards and handlers accept as an evaluator. `as_evaluator` describes each kind."""

_MISTAKES = (TypeError, AttributeError, NameError, NotImplementedError)


class NotAnEvaluation(DemurError):  # noqa: N818  # it names what was returned
    """Report that a judge returned something that says nothing about an answer."""


class Judge(FrozenRunnable[Sample | Mapping[str, Any], Evaluation]):
    """Make an evaluator of a Runnable that returns a decision, a score or an evaluation."""

    judge: Runnable[Any, Any]
    threshold: float | None = None

    _learnt: Learnt = PrivateAttr(default_factory=Learnt)

    @property
    def claim_level(self) -> bool:
        """Return whether the wrapped Runnable judges claim by claim."""
        return bool(getattr(self.judge, "claim_level", False))

    def invoke(
        self,
        input: Sample | Mapping[str, Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Evaluation:
        """Judge a sample.

        Raises:
            DemurError: The judge returned neither a decision, a score nor an evaluation.
            Exception: The judge raised it.
        """
        sample = readable(self.judge, as_sample(input))
        if _only_async(self.judge):
            return self._read(in_own_loop(partial(self.judge.ainvoke, sample, config, **kwargs)))
        return self._read(self.judge.invoke(sample, config, **kwargs))

    async def ainvoke(
        self,
        input: Sample | Mapping[str, Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Evaluation:
        """Judge a sample as `invoke` does, natively asynchronous."""
        sample = readable(self.judge, as_sample(input))
        return self._read(await self.judge.ainvoke(sample, config, **kwargs))

    def _read(self, said: object) -> Evaluation:
        evaluation = said if isinstance(said, Evaluation) else self._evaluation(said)
        self._learnt.judged = True
        if self.threshold is None or evaluation.score is None or evaluation.finding != "scored":
            return evaluation
        passed = evaluation.score >= self.threshold
        below = f"{self.get_name()} scores it {evaluation.score:.3g}, below {self.threshold:g}."
        why = evaluation.explanation or ("" if passed else below)
        return evaluation.model_copy(update={"passed": passed, "explanation": why})

    def _evaluation(self, said: object) -> Evaluation:
        name = self.get_name()
        if getattr(said, "ndim", None) == 0:  # a scalar of NumPy or PyTorch
            said = said.item()  # type: ignore[attr-defined]  # it has both
        if isinstance(said, bool):
            return Evaluation(name=name, passed=said)
        if isinstance(said, Real) and math.isfinite(said):
            return Evaluation(name=name, score=float(said))
        if said is None or isinstance(said, Real):
            error = f"{name} gave {said}, which is neither a decision nor a score"
            return Evaluation(name=name, error=error, explanation=error)
        raise NotAnEvaluation(
            f"{name} returned {kind_of(said)}, expected a bool (whether the answer passes), a "
            "float (a score, with a threshold: as_evaluator(function, threshold=...) of "
            "demur.evaluators) or an Evaluation"
        )


def as_evaluator(
    judge: EvaluatorLike, *, threshold: float | None = None, name: str | None = None
) -> Runnable[Any, Evaluation]:
    """Make an evaluator of anything that judges answers.

    Guards and handlers call this for every evaluator that you give them. Call it yourself to give a
    threshold to a judge that returns scores, or to name a judge.

    Examples:
        >>> def cites(sample):
        ...     return "[1]" in sample.answer
        >>> Guard(chain, cites, as_evaluator(overlap, threshold=0.5))

    Args:
        judge: A function of a `Sample`, sync or async, or an object that is called like one. It
            returns whether the answer passes (a bool), a score (a float, higher is better) or an
            `Evaluation`. None and NaN make the evaluation undetermined. A Runnable is treated like
            a function, and one of demur's evaluators is returned as it is.
        threshold: The lowest score with which an answer passes. Without a threshold, a score
            decides nothing: a guard refuses such an evaluator, and a handler records its scores.
        name: The name of the evaluator. None: the name of the function, of the metric, or of the
            object's class.

    Returns:
        A Runnable from `Sample` to `Evaluation`. It raises what `judge` raises. In a sync call, an
        async function runs in a new event loop each time.

    Raises:
        TypeError: `judge` is none of these or is a class, or it cannot be called with a `Sample`
            alone.
        ValueError: The threshold is not a finite number. Or `judge` is one of demur's evaluators,
            which take threshold and name themselves, and `threshold` or `name` was given here.
    """
    if isinstance(judge, Evaluator):
        if threshold is not None or name is not None:
            raise ValueError(
                f"{type(judge).__name__} is an evaluator already: give threshold and name to it "
                "when you make it"
            )
        return judge
    least = _number(threshold)
    if isinstance(judge, Judge):
        changes = {"threshold": least, "name": name}
        given = {field: value for field, value in changes.items() if value is not None}
        return judge.model_copy(update=given) if given else judge
    return Judge(judge=_runnable(judge), threshold=least, name=name or _name_of(judge))


def as_evaluators(
    given: Iterable[EvaluatorLike | Sequence[EvaluatorLike]],
) -> tuple[Runnable[Any, Any], ...]:
    """Make evaluators of judges that are given singly or in lists.

    Returns:
        The evaluators in their order. Functions with the same name get numbers.

    Raises:
        TypeError: `as_evaluator` refuses a judge.
    """
    singly: list[Any] = []
    for item in given:
        singly += item if isinstance(item, (list, tuple)) else [item]
    evaluators: list[Runnable[Any, Any]] = []
    taken: set[str] = set()
    for evaluator in map(as_evaluator, singly):
        name = evaluator.get_name()
        if isinstance(evaluator, Judge) and name in taken:
            number = next(n for n in count(2) if f"{name} {n}" not in taken)
            evaluator = evaluator.model_copy(update={"name": f"{name} {number}"})
        taken.add(evaluator.get_name())
        evaluators.append(evaluator)
    learn(evaluators)  # registers their models' keys, so that no record holds one
    return tuple(evaluators)


def decides_nothing(evaluator: Runnable[Any, Any]) -> bool:
    """Return whether it is known, before it has judged, that an evaluator only scores."""
    if isinstance(evaluator, Judge) and evaluator.threshold is None:
        evaluator = evaluator.judge
    return getattr(evaluator, "threshold", 0) is None


def is_mistake(evaluator: Runnable[Any, Any], error: Exception) -> bool:
    """Return whether an exception of an evaluator shows a mistake in the program.

    That is the case when the evaluator returned something that is no evaluation. It is also the
    case when an error such as `TypeError` comes before the evaluator's first evaluation. A later
    error of this kind is a failure to judge.
    """
    if isinstance(error, NotAnEvaluation):
        return True
    is_new = isinstance(evaluator, (Judge, Evaluator)) and not evaluator._learnt.judged
    # A garbled reply of an endpoint can raise a TypeError too.
    return is_new and isinstance(error, _MISTAKES) and not is_retryable(error)


# --- What was given ------------------------------------------------------------------------------


def _runnable(judge: Any) -> Runnable[Any, Any]:
    if isinstance(judge, type):
        raise TypeError(
            f"expected an evaluator, got the class {judge.__name__}: make one first, "
            f"{judge.__name__}({', '.join(_arguments_of(judge))})"
        )
    if isinstance(judge, (str, BaseLanguageModel)):
        got, model = (repr(judge),) * 2 if isinstance(judge, str) else (kind_of(judge), "model")
        raise TypeError(
            f"expected an evaluator, got {got}: if that is a model or names one, make an evaluator "
            f"with it, such as RefChecker({model})"
        )
    if isinstance(judge, Runnable):
        return judge
    if not callable(judge):
        raise TypeError(
            "expected an evaluator: a Runnable or a function from Sample to an Evaluation, a bool "
            "or a score, which may ask a judge of another library; got "
            f"{kind_of(judge)}"
        )
    _refuse_signature(judge)
    made: Runnable[Any, Any] = coerce_to_runnable(judge)
    return made


def _refuse_signature(function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some builtins have no signature
    # LangChain passes these to functions that declare them.
    passed = {name: None for name in ("config", "run_manager") if name in signature.parameters}
    try:
        signature.bind(None, **passed)
    except TypeError as error:
        name = _name_of(function)
        raise TypeError(
            f"{name}{signature} cannot judge: it is called with one argument, a Sample, which has "
            f"question, answer and contexts. Adapt it: lambda sample: {name}(sample.question, "
            "sample.answer)"
        ) from error


def _arguments_of(made: type) -> list[str]:
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return ["..."]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.default is one.empty and one.kind not in variable]


def _name_of(judge: Any) -> str:
    """Return the name that an evaluator gets if you give none."""
    if isinstance(judge, Runnable):
        return judge.get_name()
    if isinstance(judge, partial):
        return _name_of(judge.func)
    own = getattr(judge, "name", None)
    if isinstance(own, str) and own:
        return own
    name = getattr(judge, "__name__", type(judge).__name__)
    if name == "<lambda>":
        return "lambda"
    # For a closure such as "_wrapped", the name of the function that made it says more.
    made = getattr(judge, "__qualname__", name).split(".<locals>")[0]
    return made if name.startswith("_") and made else name


def _number(threshold: float | None) -> float | None:
    if isinstance(threshold, Threshold):
        raise ValueError(
            "threshold: a Threshold is bound to the fingerprints of an evaluator, and a function "
            f"has none: pass its number, threshold={threshold.value!r}"
        )
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold: expected a number, got {kind_of(threshold)}")
    if not math.isfinite(threshold):
        raise ValueError(f"threshold: expected a finite number, got {threshold}")
    return float(threshold)


def _only_async(judge: Runnable[Any, Any]) -> bool:
    """Return whether a Runnable is made of a coroutine function, and so needs an event loop."""
    if isinstance(judge, RunnableBindingBase):
        return _only_async(judge.bound)
    if isinstance(judge, RunnableSequence):
        return any(map(_only_async, judge.steps))
    return isinstance(judge, RunnableLambda) and not hasattr(judge, "func")
