"""What to do about a rejected answer: each recovery is a value, and a policy a tuple of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from demur.guard.feedback import Feedback
from demur.guard.trace import Outcome

REFUSAL = "I cannot give an answer that the sources I have support."


@dataclass(frozen=True)
class Regenerate:
    """Have the question answered again, until an answer passes or the attempts are used up.

    With `with_input`, the chain runs on the input that it makes; else, if the guard has a model,
    that model answers from the documents; else the chain runs again as before. An
    answer that was rejected already ends it.
    """

    with_input: Callable[[Any, Feedback], Any] | None = None
    """From the chain's input and the feedback to another input."""


@dataclass(frozen=True)
class Abstain:
    """Put a refusal in the answer's place."""

    outcome: ClassVar[Outcome] = "abstained"

    text: str = REFUSAL


@dataclass(frozen=True)
class Annotate:
    """Let the best attempt through, with a note after the answer that says what does not hold."""

    outcome: ClassVar[Outcome] = "best_effort"

    note: Callable[[Feedback], str] | None = None
    """From the feedback to the note; None for ours."""

    def text(self, feedback: Feedback) -> str:
        """The note about an answer."""
        if self.note is not None:
            return self.note(feedback)
        return f"Note: this answer could not be verified.\n{feedback.text}"


@dataclass(frozen=True)
class Block:
    """Let nothing through: raise `AnswerRejected`."""

    outcome: ClassVar[Outcome] = "blocked"


Final = Abstain | Annotate | Block
Recovery = Regenerate | Final

_NAMES: dict[str, Recovery] = {
    "regenerate": Regenerate(),
    "abstain": Abstain(),
    "annotate": Annotate(),
    "block": Block(),
}


@dataclass(frozen=True)
class Policy:
    """What a guard does, in order: how often it may have the question answered, then the end."""

    attempts: int
    regenerate: Regenerate
    final: Final


def make_policy(
    on_fail: Recovery | str | Sequence[Recovery | str] | None, max_attempts: int | None
) -> Policy:
    """The policy that the arguments of a guard describe.

    Args:
        on_fail: A recovery or its name, or some of them in order: at most one `Regenerate`, which
            comes first, and one of the others. None: `(Regenerate(), Abstain())`.
        max_attempts: Answers in all, at least 1. None: 2 with `Regenerate`, else 1.

    Raises:
        ValueError: An argument is out of its range, or the recoveries do not go together.
        TypeError: What was given is no recovery.
    """
    if on_fail is None:
        on_fail = (Regenerate(), Abstain())
    given = on_fail if isinstance(on_fail, Sequence) and not isinstance(on_fail, str) else [on_fail]
    recoveries = [_recovery(one) for one in given]
    again = [one for one in recoveries if isinstance(one, Regenerate)]
    final = [one for one in recoveries if not isinstance(one, Regenerate)]
    if recoveries != [*again, *final] or len(again) > 1 or len(final) > 1:
        raise ValueError(
            "on_fail: expected Regenerate first, if at all, and then one of Abstain, Annotate and "
            f"Block; got {recoveries}"
        )
    attempts = (2 if again else 1) if max_attempts is None else max_attempts
    if attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts}")
    return Policy(attempts, again[0] if again else Regenerate(), final[0] if final else Abstain())


def _recovery(given: Any) -> Recovery:
    if isinstance(given, Recovery):
        return given
    if isinstance(given, str) and given in _NAMES:
        return _NAMES[given]
    what = repr(given) if isinstance(given, (str, type)) else type(given).__name__
    raise TypeError(
        f"on_fail: expected Regenerate(), Abstain(), Annotate(), Block(), or one of their names "
        f"({', '.join(_NAMES)}), got {what}"
    )
