"""Read policies, which say what recovery is taken for what failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from demur.guard.recoveries import (
    Abstain,
    Again,
    Annotate,
    Block,
    Cite,
    Final,
    Recovery,
    Regenerate,
    Repair,
    Retrieve,
    Strip,
)
from demur.local import resolve_model
from demur.schema import Failure

Policy = Mapping[str, Again | Final]
OnFail = Mapping[str, Recovery | str] | Recovery | str | None

ANY = "any"
"""The policy's key for failures that have no key of their own."""
UNDETERMINED = "undetermined"
"""The policy's key for answers that an evaluator could not decide about."""
END = "end"
"""The policy's key for the recovery that is taken when nothing is left to try."""

_SPECIFICS = (
    "Be specific: give the names, dates, places and numbers that belong to this question and to "
    "no other."
)
_NAMES: dict[str, Again | Final] = {
    "regenerate": Regenerate(),
    "strip": Strip(),
    "abstain": Abstain(),
    "annotate": Annotate(),
    "block": Block(),
}


def make_policy(
    on_fail: OnFail,
    model: Any = None,
    *,
    adapt: Callable[[Any], Any] = lambda recovery: recovery,
    retriever: Runnable[str, Any] | None = None,
) -> dict[str, Again | Final]:
    """Return the policy that a guard's arguments describe.

    Args:
        on_fail: A policy, one recovery for every failure, or the name of a recovery. None: the
            default policy.
        model: The model that answers again in the default policy; None: the chain does.
        adapt: A function that turns a recovery, as users of a framework write it, into demur's
            recovery.
        retriever: The retriever that the default policy asks about claims that the documents do not
            speak of.

    Returns:
        A mapping from failures to recoveries in the given order, with plain strings as keys and
        "end" as the last.

    Raises:
        ValueError: A key is not the name of a failure, the recovery for "end" cannot end a call, or
            both a policy and a model are given.
        TypeError: A value is not a recovery.
    """
    if on_fail is not None and model is not None:
        raise ValueError(
            "model= and on_fail= cannot both be given: name the model in the policy instead, "
            "on_fail={'contradiction': Repair(model), ...}"
        )
    if on_fail is None:
        return _default(adapt(Regenerate() if model is None else Repair(model)), retriever)
    if not isinstance(on_fail, Mapping):
        only = _recovery(on_fail)
        on_fail = {END: only} if isinstance(only, Final) else {ANY: only}
    known = [*map(str, Failure), ANY, UNDETERMINED, END]
    if unknown := [key for key in on_fail if str(key) not in known]:
        raise ValueError(f"on_fail: no failure is called {unknown[0]!r}; expected {known}")
    policy = {str(key): _adapted(_recovery(value), adapt) for key, value in on_fail.items()}
    end = policy.pop(END, Abstain())
    if not isinstance(end, Final):
        raise ValueError(
            f"on_fail: {END!r} is for when nothing is left to try: expected Abstain(), Annotate() "
            f"or Block(), got {end}"
        )
    return {**policy, END: end}


def _default(
    answers: Regenerate | Repair, retriever: Runnable[str, Any] | None
) -> dict[str, Again | Final]:
    policy: dict[str, Again | Final] = {}
    if retriever is not None:
        search = Retrieve(retriever, answers)
        searched = (Failure.NEUTRAL, Failure.UNSUPPORTED, Failure.MISMATCH)
        policy = dict.fromkeys(map(str, searched), search)
    if answers != Regenerate():
        policy[str(Failure.VAGUE)] = replace(answers, instruction=_SPECIFICS)
    policy[str(Failure.CITATION)] = Cite()
    return {**policy, ANY: answers, END: Abstain()}


def _adapted(recovery: Again | Final, adapt: Callable[[Any], Any]) -> Again | Final:
    if isinstance(recovery, Retrieve):
        recovery = replace(recovery, then=adapt(recovery.then))
    return recovery if isinstance(recovery, Final) else adapt(recovery)


def prepared(policy: Policy) -> dict[str, Again | Final]:
    """Return the policy with chat models in place of their names, after checking its recoveries.

    Raises:
        ValueError: Nothing would read the instruction or the documents of a recovery, or a model's
            name has an unknown form.
        TypeError: A value is not a retriever or not a chat model.
        DemurError: A model is not available.
    """
    named: dict[str, BaseChatModel] = {}

    def found(model: Any) -> BaseChatModel:
        if not isinstance(model, str):
            return resolve_model(model)
        if model not in named:  # one object for each name, so that recoveries share its limits
            named[model] = resolve_model(model)
        return named[model]

    def answering(recovery: Regenerate | Repair) -> Regenerate | Repair:
        if isinstance(recovery, Repair):
            return replace(recovery, model=found(recovery.model))
        if recovery.tell is None and recovery.instruction:
            raise ValueError(
                f"Regenerate(instruction={recovery.instruction!r}) asks the chain as before, and "
                "nothing would read the instruction: give tell=, or have a model answer, "
                "Repair(model, instruction=...)"
            )
        return recovery

    def searching(recovery: Retrieve) -> Retrieve:
        if not isinstance(recovery.retriever, Runnable):
            raise TypeError(
                "Retrieve expects a retriever, a Runnable from a query to documents, got "
                f"{type(recovery.retriever).__name__}"
            )
        if recovery.widened is None and recovery.then == Regenerate():
            raise ValueError(
                "Retrieve: nothing would read what the retriever finds. Have a model answer, "
                "Retrieve(retriever, then=Repair(model)); tell the chain, then=Regenerate(tell=f); "
                "or give a retriever that is in the chain as widen(retriever)"
            )
        return replace(recovery, then=answering(recovery.then))

    ready = dict(policy)
    for key, recovery in policy.items():
        if isinstance(recovery, Retrieve):
            ready[key] = searching(recovery)
        elif isinstance(recovery, Regenerate | Repair):
            ready[key] = answering(recovery)
        elif isinstance(recovery, Strip) and recovery.model is not None:
            ready[key] = replace(recovery, model=found(recovery.model))
    return ready


def fitting(policy: Policy, failures: Iterable[Failure]) -> Iterator[Again | Final]:
    """Return the recoveries whose keys fit the failures, in the policy's order, "end" last."""
    names = {*map(str, failures), ANY, END}
    return (recovery for key, recovery in policy.items() if key in names)


def for_undetermined(policy: Policy) -> Iterator[Again | Final]:
    """Return the recovery for an answer that could not be decided about, or an empty iterator."""
    return (recovery for key, recovery in policy.items() if key == UNDETERMINED)


def _recovery(recovery: Any) -> Again | Final:
    if isinstance(recovery, Again | Final):
        return recovery
    if isinstance(recovery, str) and recovery in _NAMES:
        return _NAMES[recovery]
    what = repr(recovery) if isinstance(recovery, str) else type(recovery).__name__
    if isinstance(recovery, type):
        what = f"the class {recovery.__name__}: make one first, {recovery.__name__}(...)"
    raise TypeError(
        "on_fail: expected a mapping from failures to recoveries, or a recovery such as "
        "Repair(model) or Abstain(), or the name of a recovery that needs no arguments "
        f"({', '.join(_NAMES)}); got {what}"
    )
