"""What the middleware and the node share: a guard for each call, run where nothing can leak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

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
from demur.shapes import Own, this_turn
from langchain_demur._messages import MARK, marked

Tell = Callable[[Any, Feedback], Any]
Evaluators = Sequence[EvaluatorLike | Sequence[EvaluatorLike]]

_REJECTED = "rejected"
_REASON = "reason"
_AT = Own("demur:at")


@dataclass
class Call:
    """One guarded call: what is run for an answer, and how many answers came of it."""

    run: Callable[..., Any]
    state: Any
    """The graph's."""
    rejected: int
    """How many answers of this turn were rejected before this call."""
    judged: list[Any] = field(default_factory=list)
    """What held the answers that the guard has got; it asks for another when it has rejected all
    before. Here, and in no output: what a guard's own run returns is told to listeners."""

    def judge(
        self, answer: AIMessage | str, documents: Mapping[str, Any], held: Any
    ) -> dict[str, Any]:
        """What the guard's chain returns: an answer, and where it is in `judged`."""
        self.judged.append(held)
        return {**documents, "answer": answer, _AT: len(self.judged) - 1}

    def of(self, found: Mapping[str, Any]) -> Any:
        """What held the answer that the guard has let through, or put another in its place."""
        return self.judged[found[_AT]]

    def told(self, answer: Any) -> Any:
        """What the guard put in an answer's place, with a reason that counts the whole turn."""
        mark = answer.response_metadata.get(MARK) if isinstance(answer, AIMessage) else None
        if not (self.rejected and isinstance(mark, Mapping) and _REASON in mark):
            return answer
        answers = "1 answer" if self.rejected == 1 else f"{self.rejected} answers"
        reason = f"{mark[_REASON]}, after {answers} rejected before calls of tools"
        return marked(answer, {**mark, _REASON: reason})

    def step(self, message: AIMessage, found: Mapping[str, Any] | None = None) -> AIMessage:
        """A message after which the turn goes on, with the count of rejected answers, if any."""
        rejected = self.rejected + (len(self.judged) if found is None else found[_AT])
        return marked(message, {_REJECTED: rejected}) if rejected else message


class NoAnswerYet(Exception):  # noqa: N818  # it takes a step on the way out of the guard
    """The model calls tools: there is nothing to judge, and the graph goes on."""

    def __init__(self, step: Any) -> None:
        # Not in the message: tracers write that down.
        super().__init__("the model calls tools: there is no answer yet")
        self.step = step


@dataclass(frozen=True)
class Guards:
    """Guards around one chain that differ in how many attempts they have left."""

    chain: Runnable[Any, Any]
    evaluators: Evaluators
    budget: Budget
    options: Mapping[str, Any]
    _first: Guard[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        # Once for all guards: that one of them has judged is known to the evaluators.
        object.__setattr__(self, "evaluators", as_evaluators(self.evaluators))
        # Made once, so that a wrong argument shows now and not in a call.
        object.__setattr__(self, "_first", self._build(self.budget))

    def after(self, rejected: int) -> Guard[Any, Any]:
        """The guard for what follows so many rejected answers of the same turn."""
        if not rejected:
            return self._first
        # The one answer that comes now is judged in any case.
        return self._build(replace(self.budget, attempts=max(1, self.budget.attempts - rejected)))

    def _build(self, budget: Budget) -> Guard[Any, Any]:
        return Guard(self.chain, *self.evaluators, budget=budget, answer="answer", **self.options)


def answering(run: Any, arun: Any) -> Runnable[Any, Any]:
    """What a guard guards: two functions of its input and the `Call`."""
    return RunnableLambda(run, arun, name="demur:answer")


def policy_of(
    on_fail: OnFail,
    model: str | BaseChatModel | None,
    telling: Callable[[Tell | None], Tell],
) -> Policy:
    """A guard's policy, in which what answers again is always told what was wrong.

    Args:
        on_fail: As `demur.Guard` takes it.
        model: As `demur.Guard` takes it.
        telling: From what a `Regenerate` tells, if it says so, to how the guard's chain is told.
    """

    def adapt(recovery: Any) -> Any:
        if not isinstance(recovery, Regenerate):
            return recovery
        return replace(recovery, tell=telling(recovery.tell))

    return prepared(make_policy(on_fail, model, adapt=adapt))


def rejected_in(messages: Sequence[BaseMessage]) -> int:
    """How many answers of this turn were rejected, by the last message that says so."""
    marks = [m.response_metadata.get(MARK) for m in this_turn(messages) if isinstance(m, AIMessage)]
    counts = [mark[_REJECTED] for mark in marks if isinstance(mark, Mapping) and _REJECTED in mark]
    return int(counts[-1]) if counts else 0


def named_apart(config: RunnableConfig | None = None) -> RunnableConfig:
    """A guard's config, out of that of the running node; None for the one of the context.

    The run's name has a colon, as no node's has: langgraph streams what a run of its node's name
    returns, and the guard returns an answer to the middleware or node, not to the graph.
    """
    kept = {key: value for key, value in (config or {}).items() if key != "run_id"}
    return cast(RunnableConfig, {**kept, "run_name": "demur:guard"})


def kind_of(value: Any) -> str:
    """What something is, in words: with its keys but without its content."""
    if isinstance(value, Mapping):
        keys = ", ".join(map(repr, value)) or "(none)"
        return f"a {type(value).__name__} with the keys {keys}"
    return f"a {type(value).__name__}"


def is_own(answer: AIMessage | str, judged: AIMessage | str) -> bool:
    """Whether what a guard returned is what it judged, and nothing was put in its place."""
    if isinstance(answer, str) or isinstance(judged, str):
        return answer is judged or (isinstance(judged, str) and answer == judged)
    same = str(answer.text) == str(judged.text)
    return same and outcome_of(answer) in (None, "passed", "recovered")


def outcome_of(answer: AIMessage) -> str | None:
    """What a guard says in a message of how it came about; None where it says nothing."""
    mark = answer.response_metadata.get(MARK)
    return mark.get("outcome") if isinstance(mark, Mapping) else None


def read_state(reader: str | Callable[[Any], Any], state: Any, name: str) -> Any:
    """What a key of a state, or a function of it, gives.

    Raises:
        DemurError: There is no such key.
    """
    if callable(reader):
        return reader(state)
    values = view_of(state)
    if reader not in values:
        raise DemurError(f"{name}={reader!r}: there is no such key in the state, {kind_of(values)}")
    return values[reader]


def view_of(state: Any) -> dict[str, Any]:
    """The fields of a state: of a mapping, a pydantic model or a dataclass."""
    return dict(state) if isinstance(state, Mapping) else dict(vars(state))
