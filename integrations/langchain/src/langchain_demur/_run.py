"""Build a guard for each call of a middleware or node, and run it where nothing can leak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda

from demur import DemurError, Guard
from demur.evaluators import EvaluatorLike, as_evaluators
from demur.guard import (
    Budget,
    Feedback,
    OnFail,
    Policy,
    Regenerate,
    make_policy,
    prepared,
)
from demur.shapes import Own, find_messages, kind_of, this_turn
from langchain_demur._messages import MARK, marked

Tell = Callable[[Any, Feedback], Any]
Evaluators = Sequence[EvaluatorLike | Sequence[EvaluatorLike]]

MESSAGES = "messages"
_REJECTED = "rejected"
_REASON = "reason"
_AT = Own("demur:at")


@dataclass
class Call:
    """Represent one guarded call: what to run for an answer, and the answers so far."""

    run: Callable[..., Any]
    state: Any
    """The state of the graph."""
    rejected: int
    """The number of answers of this turn that were rejected before this call."""
    judged: list[Any] = field(default_factory=list)
    """For each answer that the guard was given, the object that held it. The guard asks for another
    answer only after it has rejected all before. The list is kept here and not in an output,
    because listeners hear what a guard's run returns."""

    def judge(
        self, answer: AIMessage | str, documents: Mapping[str, Any], held: Any
    ) -> dict[str, Any]:
        """Return the output of the guard's chain: an answer, and its place in `judged`."""
        self.judged.append(held)
        return {**documents, "answer": answer, _AT: len(self.judged) - 1}

    def of(self, found: Mapping[str, Any]) -> Any:
        """Return the object that held the answer which the guard let through or replaced."""
        return self.judged[found[_AT]]

    def told(self, answer: Any) -> Any:
        """Return the guard's answer with a reason that counts all rejected answers of the turn.

        An answer that has no reason is returned unchanged.
        """
        mark = answer.response_metadata.get(MARK) if isinstance(answer, AIMessage) else None
        if not (self.rejected and isinstance(mark, Mapping) and _REASON in mark):
            return answer
        answers = "1 answer" if self.rejected == 1 else f"{self.rejected} answers"
        reason = f"{mark[_REASON]}, after {answers} rejected before calls of tools"
        return marked(answer, {**mark, _REASON: reason})

    def step(self, message: AIMessage, found: Mapping[str, Any] | None = None) -> AIMessage:
        """Return a message after which the turn goes on.

        If answers were rejected, the message is marked with their number.
        """
        rejected = self.rejected + (len(self.judged) if found is None else found[_AT])
        return marked(message, {_REJECTED: rejected}) if rejected else message


class NoAnswerYet(Exception):  # noqa: N818  # not an error: it carries a message out of the guard
    """Signal that the model calls tools: there is nothing to judge, and the graph goes on."""

    def __init__(self, step: Any) -> None:
        # `step` is not in the error's message, because tracers write that down.
        super().__init__("the model calls tools: there is no answer yet")
        self.step = step


class Guards:
    """Make guards around one chain that differ in how many attempts they have left."""

    def __init__(
        self,
        run: Any,
        arun: Any,
        evaluators: Evaluators,
        budget: Budget | None,
        options: Mapping[str, Any],
    ) -> None:
        """Make the first guard, so that a wrong argument is reported before the first call.

        Args:
            run: The chain of the guards, as a function of the guard's input and the `Call`.
            arun: The same, asynchronous.
            evaluators: As `demur.Guard` takes them.
            budget: As `demur.Guard` takes it.
            options: The other options of `demur.Guard`.
        """
        self._chain = RunnableLambda(run, arun, name="demur:answer")
        # Made once for all guards, because the evaluators remember that they have judged before.
        self._evaluators = as_evaluators(evaluators)
        self._budget = budget or Budget()
        self._options = options
        self._first = self._build(self._budget)

    def after(self, rejected: int) -> Guard[Any, Any]:
        """Return the guard for the answers that follow rejected answers of the same turn.

        Args:
            rejected: The number of answers of this turn that were rejected before.
        """
        if not rejected:
            return self._first
        # At least one attempt remains: the answer of this call is always judged.
        return self._build(replace(self._budget, attempts=max(1, self._budget.attempts - rejected)))

    def _build(self, budget: Budget) -> Guard[Any, Any]:
        options = {**self._options, "budget": budget}
        return Guard(self._chain, *self._evaluators, answer="answer", **options)


def policy_of(
    on_fail: OnFail,
    model: str | BaseChatModel | None,
    telling: Callable[[Tell | None], Tell],
) -> Policy:
    """Return a guard's policy in which every `Regenerate` tells the model what was wrong.

    Args:
        on_fail: As `demur.Guard` takes it.
        model: As `demur.Guard` takes it.
        telling: A function from the `tell` of a `Regenerate`, or None if it has none, to the `tell`
            that the guard's chain needs.
    """

    def adapt(recovery: Any) -> Any:
        if not isinstance(recovery, Regenerate):
            return recovery
        return replace(recovery, tell=telling(recovery.tell))

    return prepared(make_policy(on_fail, model, adapt=adapt))


def rejected_in(messages: Sequence[BaseMessage]) -> int:
    """Return how many answers of this turn were rejected, from the last message that says so."""
    marks = [m.response_metadata.get(MARK) for m in this_turn(messages) if isinstance(m, AIMessage)]
    counts = [mark[_REJECTED] for mark in marks if isinstance(mark, Mapping) and _REJECTED in mark]
    return int(counts[-1]) if counts else 0


def named_apart(config: RunnableConfig | None = None, name: str = "demur:guard") -> RunnableConfig:
    """Return the guard's config, made from the config of the running node.

    The name of the run has a colon, which no name of a node can have. LangGraph streams the output
    of a run that has the name of its node, but the guard returns its answer to the middleware or
    the node, not to the graph.

    Args:
        config: The config of the node. None: the one of the current context.
        name: The name of the guard's run.
    """
    kept = {key: value for key, value in (config or {}).items() if key != "run_id"}
    return cast(RunnableConfig, {**kept, "run_name": name})


def is_own(answer: AIMessage | str, judged: AIMessage | str) -> bool:
    """Return whether the guard returned the answer that it judged, and did not replace it."""
    if isinstance(answer, str) or isinstance(judged, str):
        return answer is judged or (isinstance(judged, str) and answer == judged)
    same = str(answer.text) == str(judged.text)
    return same and outcome_of(answer) in (None, "passed", "recovered")


def outcome_of(answer: AIMessage) -> str | None:
    """Return the outcome that a guard wrote into a message, or None if it wrote none."""
    mark = answer.response_metadata.get(MARK)
    return mark.get("outcome") if isinstance(mark, Mapping) else None


def read_state(reader: str | Callable[[Any], Any], state: Any, name: str) -> Any:
    """Return the value of a key of the state, or of a function of the state.

    Args:
        reader: The key or the function.
        state: The state.
        name: The argument that gave the reader, for the error.

    Raises:
        DemurError: The state has no such key.
    """
    if callable(reader):
        return reader(state)
    values = view_of(state)
    if reader not in values:
        raise DemurError(f"{name}={reader!r}: there is no such key in the state, {kind_of(values)}")
    return values[reader]


def view_of(state: Any) -> dict[str, Any]:
    """Return the fields of a state that is a mapping, a pydantic model or a dataclass.

    Messages in short form, and those that are none, are read as `find_messages` does.
    """
    view = dict(state) if isinstance(state, Mapping) else dict(vars(state))
    return {**view, MESSAGES: find_messages(view[MESSAGES])} if MESSAGES in view else view
