"""Fail tests whose answers are not grounded: the pytest plugin, and the assertion that it serves.

pytest loads `plugin` in every run, so this room imports the rest of demur only when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from demur.testing.sessions import running

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from demur.evaluators import EvaluatorLike
    from demur.schema import OnAbstain

__all__ = ["assert_grounded"]


def assert_grounded(
    answer: Any,
    contexts: str | Document | Sequence[str | Document],
    question: str | None = None,
    *,
    evaluator: EvaluatorLike | Sequence[EvaluatorLike] | None = None,
    on_abstain: OnAbstain = "pass",
) -> None:
    """Fail unless an answer is grounded in its contexts.

    Examples:
        >>> assert_grounded(chain.invoke(question), contexts=[guide], question=question)

    Args:
        answer: The answer: a text, a message, or a structured answer.
        contexts: The texts that the answer must be grounded in.
        question: The question that was answered.
        evaluator: The evaluators, as `demur.Guard` takes them. None: `RefChecker` with demur's own
            judge "small", which needs no key and no network (`demur[small]`).
        on_abstain: What to do with an answer that states nothing to check, such as "I don't know.":
            "pass" or "fail".

    Raises:
        AssertionError: A claim failed, or the evaluator could not decide. The message has the
            answer with the failing sentences marked, their labels, and the nearest quotes.
        ValueError: An argument is not what is expected.
        DemurError: The answer cannot be found in `answer`, or the judge is not installed.
    """
    __tracebackhide__ = True
    from demur.schema import Sample
    from demur.testing.checking import Checked

    sample = Sample.model_validate({"answer": "", "contexts": contexts})
    asked = {} if question is None else {"question": question}
    judges = () if evaluator is None else (evaluator,)
    session = running[-1] if running else None
    checked = Checked(session, lambda _: answer, *judges, on_abstain=on_abstain)
    checked.invoke({"contexts": [*sample.contexts], **asked})
