"""Ask the references many questions beforehand, so that later questions have neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from demur.runtime import as_completed
from demur.schema import Usage
from demur.storage import question_id


@dataclass(frozen=True)
class Fitted:
    """Describe the progress of `fit`, or its result."""

    questions: int
    """The number of questions; repeated questions count once."""
    done: int = 0
    """The number of questions for which the store holds what the references say."""
    failed: tuple[tuple[str, str], ...] = ()
    """The questions that failed, each with the reason. The next `fit` tries them again."""
    usage: Usage = field(default_factory=Usage)
    """The usage of this call of `fit`."""


Learned: TypeAlias = tuple[str, str | None, Usage]
"""A question, the reason why it could not be learned (or None), and the usage."""
Report: TypeAlias = Callable[[Fitted], None]


def fit(
    learn: Callable[[str], Learned], questions: Iterable[str], at_once: int, report: Report | None
) -> Fitted:
    """Learn each question in threads; what was learned stays even if the rest is interrupted."""
    wanted = _checked(questions, at_once)
    report = report or (lambda now: None)
    now = Fitted(len(wanted))
    report(now)
    for learned in as_completed(learn, wanted, at_once):
        now = _after(now, learned)
        report(now)
    return now


def _checked(questions: Iterable[Any], at_once: int) -> Sequence[str]:
    """Return the questions without repetitions."""
    if isinstance(questions, str):
        raise TypeError(f"expected a list of questions, got one text: {questions!r}")
    if at_once < 1:
        raise ValueError(f"at_once must be at least 1, got {at_once}")
    by_id: dict[str, str] = {}
    for at, question in enumerate(questions):
        if not isinstance(question, str) or not question.strip():
            raise ValueError(f"expected a question at place {at} of the list, got {question!r}")
        by_id.setdefault(question_id(question), question)
    return list(by_id.values())


def _after(now: Fitted, learned: Learned) -> Fitted:
    question, error, spent = learned
    usage = now.usage + spent
    if error is not None:
        return replace(now, failed=(*now.failed, (question, error)), usage=usage)
    return replace(now, done=now.done + 1, usage=usage)
