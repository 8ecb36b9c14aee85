"""Learn what the references say of a question, from the store or by asking them once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeGuard

from langchain_core.runnables import RunnableConfig

from demur.evaluators.fewl.drafts import Draft
from demur.evaluators.fewl.entries import KnownQuestion
from demur.evaluators.fewl.neighbors import NeighborStore
from demur.evaluators.fewl.parsing import Pairs
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.runtime import (
    CallPolicy,
    Costs,
    LocalCall,
    Outcome,
    Spent,
    Steps,
    UndeterminedError,
    adrive,
    ashare,
    ask,
    ask_all,
    attempted,
    current_account,
    drive,
    share,
)
from demur.schema import Usage
from demur.storage import question_id


@dataclass(frozen=True)
class Learner:
    """Ask the references for what the store does not hold, and keep their replies there."""

    asks: ReferenceModels
    store: NeighborStore
    by_agreement: bool
    """Whether the references are also asked with which wrong and corrected answers they agree."""
    min_pairs: int

    def learn(self, question: str, with_pairs: bool) -> Steps[KnownQuestion]:
        """Learn what the references say of a question; they are asked only what is not known yet.

        Callers that need the same at the same time wait for the same replies. Otherwise, a caller
        that arrives between two replies would pay for the first one again.

        Args:
            question: The question.
            with_pairs: Whether wrong and corrected answers are needed too.

        Returns:
            The entry that the store then holds.

        Raises:
            UndeterminedError: The references did not answer, or the store failed.
        """
        learned, costs = yield from ask(_Learning(self, question, with_pairs))
        yield Spent(costs)
        return learned.value

    def steps(self, question: str, with_pairs: bool) -> Steps[KnownQuestion]:
        """Do the same as `learn`, without sharing the replies with other callers."""
        recall = LocalCall(partial(self._recall, question), "known")
        known, had = yield from ask(recall, "the store cannot be read")
        wanted = len(self.asks.models)
        if known and self.asks.diversified is None and len(known.answers) != wanted:
            raise UndeterminedError(
                f"the store holds {len(known.answers)} answers to this question; expected one "
                f"answer of each of the {wanted} reference models: add them again"
            )
        has, failure = yield from self._fill(question, had, with_pairs)
        # Replies that were paid for are kept, even if others failed.
        if len(has.answers) < wanted:
            if has != had:
                keep = LocalCall(partial(self.store.drafts.keep, question, has), "keeping")
                yield from ask(keep, f"{failure}; and the other replies cannot be kept")
            raise UndeterminedError(str(failure))
        if known:
            learned = replace(known, pairs=has.pairs)
        else:
            answers = chain.from_iterable(has.answers[place] for place in range(wanted))
            learned = KnownQuestion(question, tuple(answers), has.pairs)
        if with_pairs and self.by_agreement and learned.agreement is None:
            learned = yield from self._agree(learned)
        if learned != known:
            drafted = known is None and had != Draft()
            keeping = LocalCall(partial(self._keep, learned, drafted), "keeping")
            yield from ask(keeping, "what the references said cannot be kept")
        if failure is not None:
            raise UndeterminedError(failure)
        return learned

    def _recall(self, question: str) -> tuple[KnownQuestion | None, Draft]:
        """Return the store's entry of a question, or None, and its replies as a draft."""
        known = self.store.get(question)
        if known is None:
            return None, self.store.drafts.get(question)
        if self.asks.diversified:
            return known, Draft({0: known.answers}, known.pairs)
        return known, Draft({at: (answer,) for at, answer in enumerate(known.answers)}, known.pairs)

    def _fill(self, question: str, had: Draft, with_pairs: bool) -> Steps[tuple[Draft, str | None]]:
        """Return the draft with the missing replies, and the reason if some are still missing.

        All calls are made together. If several fail, the reason is that of the first; answers come
        before pairs.
        """
        places = [place for place in range(len(self.asks.models)) if place not in had.answers]
        calls = self.asks.answer_calls(question) if places else []
        pair_calls = [self.asks.pairs_call(question)] if with_pairs and had.pairs is None else []
        outcomes = yield from ask_all([*(calls[place] for place in places), *pair_calls])
        answers, pairs, failures = dict(had.answers), had.pairs, []
        for place, outcome in zip(places, outcomes, strict=False):
            try:
                answers[place] = self.asks.answer(place, outcome)
            except UndeterminedError as error:
                failures.append(str(error))
        if pair_calls:
            try:
                pairs = self.asks.pairs(outcomes[-1])
            except UndeterminedError as error:
                failures.append(str(error))
        return Draft(answers, pairs), next(iter(failures), None)

    def _keep(self, known: KnownQuestion, drafted: bool) -> None:
        self.store.add_many([known])
        if drafted:
            self.store.drafts.drop(known.question)

    def _agree(self, known: KnownQuestion) -> Steps[KnownQuestion]:
        """Return the question with its agreement, which stays None if it cannot be found."""
        if not self.enough(known.pairs):
            return known
        calls = self.asks.agreement_calls(known.question, known.answers, known.pairs)
        outcomes = yield from ask_all(calls)
        try:
            return replace(known, agreement=self.asks.agreement(outcomes, known.pairs))
        except UndeterminedError:
            return known

    def enough(self, pairs: Pairs | None) -> TypeGuard[Pairs]:
        """Return whether there are enough usable pairs to tell the references apart."""
        return pairs is not None and len(pairs.usable) >= self.min_pairs


_Result = tuple[Outcome[KnownQuestion], Costs]
"""The outcome of learning a question, and its costs."""


@dataclass(frozen=True)
class _Learning:
    """Represent a question that is being learned, by the caller that asked first."""

    learner: Learner
    question: str
    with_pairs: bool
    stage: str = "learning"

    def at_once(self, policy: CallPolicy | None) -> int:
        return 1

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[_Result]:
        return _as_outcome(*share(self._key(policy), lambda: drive(self._steps(), config, policy)))

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[_Result]:
        shared = await ashare(self._key(policy), lambda: adrive(self._steps(), config, policy))
        return _as_outcome(*shared)

    def _steps(self) -> Steps[Outcome[KnownQuestion]]:
        return attempted(self.learner.steps(self.question, self.with_pairs))

    def _key(self, policy: CallPolicy | None) -> Hashable:
        # The key has the policy and the account of the budget, as for a chat call.
        wanted = self.with_pairs, self.learner.by_agreement, self.learner.min_pairs
        return (
            id(self.learner.store),
            question_id(self.question),
            *wanted,
            policy,
            id(current_account()),
        )


def _as_outcome(learned: _Result, joined: bool) -> Outcome[_Result]:
    outcome, costs = learned
    if joined:  # the caller that made the calls counts them
        spent = costs.usage.items()
        cached = {stage: Usage(cached=usage.calls + usage.cached) for stage, usage in spent}
        costs = replace(costs, usage=cached)
    return Outcome((outcome, costs))
