"""What to do about a rejected answer: each recovery is a value, and a policy a mapping to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from demur.guard.feedback import Feedback
from demur.guard.trace import TraceOutcome
from demur.schema import Failure

REFUSAL = "I cannot give an answer that the sources I have support."
SPECIFICS = (
    "Be specific: give the names, dates, places and numbers that belong to this question and to "
    "no other."
)


@dataclass(frozen=True)
class Retrieve:
    """Search for what failed, and have the question answered again from what is found as well.

    The guard's retriever is asked about each failed claim, and retrievers of the chain that
    `demur.widen` wraps are asked about them too. Where there is neither, it does what
    `Regenerate` does.
    """

    instruction: str = ""
    """For the model that answers again, before the problems."""


@dataclass(frozen=True)
class Regenerate:
    """Have the question answered again, with the problems told to whoever answers.

    The chain answers on what `with_feedback` makes of its input, if the guard has that; else the
    guard's model, if it has one; else the chain as before.
    """

    instruction: str = ""
    """For the model that answers again, before the problems."""


@dataclass(frozen=True)
class Repair:
    """Have the guard's model answer from the documents, even where the chain could answer again."""

    instruction: str = ""
    """For the model that answers again, before the problems."""


@dataclass(frozen=True)
class Abstain:
    """Put a refusal in the answer's place."""

    outcome: ClassVar[TraceOutcome] = "abstained"

    text: str = REFUSAL


@dataclass(frozen=True)
class Annotate:
    """Let the best attempt through, with a note after the answer that says what does not hold.

    The best is the one that fewest evaluators are against, and of those the one with the highest
    scores.
    """

    outcome: ClassVar[TraceOutcome] = "best_effort"

    note: Callable[[Feedback], str] | None = None
    """From the feedback to the note; None for ours. An empty note changes nothing."""

    def text(self, feedback: Feedback) -> str:
        """The note about an answer."""
        if self.note is not None:
            return self.note(feedback)
        return f"Note: this answer could not be verified.\n{feedback.text}"


@dataclass(frozen=True)
class Block:
    """Let nothing through: raise `AnswerRejected`."""

    outcome: ClassVar[TraceOutcome] = "blocked"


Again = Retrieve | Regenerate | Repair
Final = Abstain | Annotate | Block
Recovery = Again | Final
Policy = Mapping[str, Recovery]

ANY = "any"
"""The key of a policy for failures that have none of their own."""
END = "end"
"""The key of a policy for when nothing is left to try."""

DEFAULT_POLICY: Policy = {
    Failure.NEUTRAL: Retrieve(),
    Failure.CONTRADICTION: Regenerate(),
    Failure.MISMATCH: Retrieve(),
    Failure.VAGUE: Regenerate(SPECIFICS),
    ANY: Regenerate(),
    END: Abstain(),
}
"""What a guard does unless it is told otherwise."""

_NAMES: dict[str, Recovery] = {
    "retrieve": Retrieve(),
    "regenerate": Regenerate(),
    "repair": Repair(),
    "abstain": Abstain(),
    "annotate": Annotate(),
    "block": Block(),
}


def name_of(recovery: Recovery) -> str:
    """The word for a kind of recovery."""
    return type(recovery).__name__.lower()


def make_policy(
    on_fail: Mapping[str, Recovery | str] | Recovery | str | None,
) -> dict[str, Recovery]:
    """The policy that a guard's argument describes.

    Args:
        on_fail: A policy; or one recovery for every failure, or its name. None: `DEFAULT_POLICY`.

    Returns:
        Failures to recoveries in their order, with plain strings as keys, "end" last.

    Raises:
        ValueError: A key names no failure, or "end" is no end.
        TypeError: What was given is no recovery.
    """
    if on_fail is None:
        on_fail = DEFAULT_POLICY
    elif not isinstance(on_fail, Mapping):
        only = _recovery(on_fail)
        on_fail = {END: only} if isinstance(only, Final) else {ANY: only}
    known = [*map(str, Failure), ANY, END]
    if unknown := [key for key in on_fail if str(key) not in known]:
        raise ValueError(f"on_fail: no failure is called {unknown[0]!r}; expected {known}")
    policy = {str(key): _recovery(value) for key, value in on_fail.items()}
    end = policy.pop(END, Abstain())
    if not isinstance(end, Final):
        raise ValueError(
            f"on_fail: {END!r} is for when nothing is left to try: expected Abstain(), Annotate() "
            f"or Block(), got {end}"
        )
    return {**policy, END: end}


def choose(policy: Policy, failures: Sequence[Failure]) -> Recovery:
    """The recovery of the first key that fits; of "end" if none does."""
    names = {*map(str, failures), ANY}
    return next((policy[key] for key in policy if key in names), policy[END])


def _recovery(recovery: Any) -> Recovery:
    if isinstance(recovery, Recovery):
        return recovery
    if isinstance(recovery, str) and recovery in _NAMES:
        return _NAMES[recovery]
    what = repr(recovery) if isinstance(recovery, (str, type)) else type(recovery).__name__
    raise TypeError(
        f"on_fail: expected a mapping from failures to recoveries, or one of them, such as "
        f"Regenerate() or Abstain(), or its name ({', '.join(_NAMES)}); got {what}"
    )
