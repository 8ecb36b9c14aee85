"""What the references say of a question: known already, or asked for once and then kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

from langchain_core.runnables import RunnableConfig

from demur.evaluators.fewl.entries import Asked, entry_id
from demur.evaluators.fewl.neighbors import NeighborStore
from demur.evaluators.fewl.parsing import Pairs
from demur.evaluators.fewl.references import References
from demur.models.calls import Ledger, LocalCall, Steps, adrive, ask, drive
from demur.models.limits import ashare, share
from demur.models.retry import CallPolicy
from demur.models.tries import Outcome, purse
from demur.schema import Usage


@dataclass(frozen=True)
class Learner:
    """Asks the references what the store does not hold, and keeps there what they say."""

    asks: References
    store: NeighborStore
    by_agreement: bool
    """Whether the references are also asked with which of the wrong and corrected answers they
    agree."""
    min_pairs: int

    def learn(self, question: str, with_pairs: bool) -> Steps[Asked | str]:
        """What the references say of a question; they are asked only what is not known yet.

        Who asks for the same at the same time waits for the same replies: else one who comes
        between two replies would pay for the first again.

        Args:
            question: The question.
            with_pairs: Whether wrong and corrected answers are wanted too.

        Returns:
            What is then kept in the store, or why it cannot be had.
        """
        (outcome,) = yield from ask([_Learning(self, question, with_pairs)])
        asked: Asked | str
        asked, ledger = outcome.value
        yield from ask([_Spent(stage, usage) for stage, usage in ledger.items()])
        return asked

    def steps(self, question: str, with_pairs: bool) -> Steps[Asked | str]:
        """As `learn`, by itself."""
        found = yield from local(partial(self.store.get, question), "known")
        if found.error is not None:
            return f"what is known cannot be read: {found.error}"
        known: Asked | None = found.value
        asks = self.asks
        if known and asks.diversified is None and len(known.answers) != len(asks.models):
            return (
                f"the store holds {len(known.answers)} answers to this question, and expected is "
                f"one of each of the {len(asks.models)} reference models: add them again"
            )
        answer_calls = [] if known else asks.answer_calls(question)
        lacks_pairs = with_pairs and (known is None or known.pairs is None)
        pair_calls = [asks.pairs_call(question)] if lacks_pairs else []
        outcomes = yield from ask([*answer_calls, *pair_calls])
        answers = known.answers if known else asks.answers(outcomes[: len(answer_calls)])
        if isinstance(answers, str):
            return answers
        asked = known or Asked(question, answers)
        # The answers were paid for: they are kept even if the pairs cannot be had.
        failure = None
        if lacks_pairs:
            pairs = asks.pairs(outcomes[-1])
            if isinstance(pairs, str):
                failure = pairs
            else:
                asked = replace(asked, pairs=pairs)
        if with_pairs and self.by_agreement and asked.agreement is None:
            asked = yield from self._agree(asked)
        if asked != known:
            kept = yield from local(partial(self.store.add_many, [asked]), "keeping")
            if kept.error is not None:
                return f"what the references said cannot be kept: {kept.error}"
        return failure or asked

    def _agree(self, asked: Asked) -> Steps[Asked]:
        """With how much each reference agrees; left open where that cannot be told."""
        if not self.enough(asked.pairs):
            return asked
        calls = self.asks.agreement_calls(asked.question, asked.answers, asked.pairs)
        outcomes = yield from ask(calls)
        agreement = self.asks.agreement(outcomes, asked.pairs)
        return asked if isinstance(agreement, str) else replace(asked, agreement=agreement)

    def enough(self, pairs: Pairs | None) -> TypeGuard[Pairs]:
        """Whether there are as many usable pairs as it takes to tell the references apart."""
        return pairs is not None and len(pairs.usable) >= self.min_pairs


def local(work: Callable[[], Any], stage: str) -> Steps[Outcome]:
    """What comes of work of this process."""
    (outcome,) = yield from ask([LocalCall(work, stage)])
    return outcome


@dataclass(frozen=True)
class _Learning:
    """A question that is being learned. Its outcome's value is what came of it, and the cost."""

    learner: Learner
    question: str
    with_pairs: bool
    stage: str = "learning"

    def at_once(self, policy: CallPolicy | None) -> int:
        return 1

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        return _told(*share(self._key(policy), lambda: drive(self._steps(), config, policy)))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        shared = await ashare(self._key(policy), lambda: adrive(self._steps(), config, policy))
        return _told(*shared)

    def _steps(self) -> Steps[Asked | str]:
        return self.learner.steps(self.question, self.with_pairs)

    def _key(self, policy: CallPolicy | None) -> Hashable:
        # With policy and budget, as for a chat call.
        wanted = self.with_pairs, self.learner.by_agreement, self.learner.min_pairs
        return id(self.learner.store), entry_id(self.question), *wanted, policy, id(purse())


def _told(learned: tuple[Asked | str, Ledger], joined: bool) -> Outcome:
    asked, ledger = learned
    if joined:  # its calls are counted where they were made
        ledger = {
            stage: Usage(cached=spent.calls + spent.cached) for stage, spent in ledger.items()
        }
    return Outcome((asked, ledger))


@dataclass(frozen=True)
class _Spent:
    """What was spent already, to be accounted under its stage."""

    stage: str
    usage: Usage

    def at_once(self, policy: CallPolicy | None) -> int:
        return 1

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        return Outcome(usage=self.usage)

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome:
        return self.run(config, policy)
