"""Check each answer of a chain under test with a guard that blocks, and fail with its findings."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from demur.evaluators import Evaluator, RefChecker
from demur.guard import AnswerRejected, Block, Guard, Guarded
from demur.testing.failure import failure_text
from demur.testing.sessions import Session


class Checked(Runnable[Any, Any]):
    """Return a chain's answers, and fail for those that are not grounded.

    Args:
        session: The run of pytest that keeps the findings; None outside of one.
        chain: The chain, as `Guard` takes it.
        evaluators: The evaluators; none for `RefChecker` with the judge "small".
        options: The options of `Guard` that say where question, answer and contexts are, and
            `on_abstain`.
    """

    def __init__(
        self, session: Session | None, chain: Any, *evaluators: Any, **options: Any
    ) -> None:
        judges = evaluators or (_small(),)
        self._guard = Guard(chain, *judges, on_fail=Block(), **options).with_trace()
        self._session = session or Session()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the chain's output.

        Raises:
            AssertionError: The answer is not grounded, or that could not be decided.
        """
        __tracebackhide__ = True
        try:
            with self._session.replying():
                return self._kept(self._guard.invoke(input, config, **kwargs))
        except AnswerRejected as rejected:
            raise self._failure(rejected) from None

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do the same as `invoke`, natively asynchronous."""
        __tracebackhide__ = True
        try:
            with self._session.replying():
                return self._kept(await self._guard.ainvoke(input, config, **kwargs))
        except AnswerRejected as rejected:
            raise self._failure(rejected) from None

    def _kept(self, guarded: Guarded[Any]) -> Any:
        self._session.keep(guarded.trace)
        return guarded.output

    def _failure(self, rejected: AnswerRejected) -> AssertionError:
        return AssertionError(failure_text(self._session.keep(rejected.trace).attempts[-1]))


@cache
def _small() -> Evaluator:
    return RefChecker("small")
