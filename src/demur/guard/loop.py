"""A guarded call, from the chain's first answer to what leaves in the end.

All of it is generators (`Steps`), so that it is written once for threads and for asyncio.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from demur.guard.attempts import (
    Answered,
    ChainCall,
    Ended,
    Tried,
    as_verdict,
    feedback_on,
    verdict_of,
)
from demur.guard.capture import distinct
from demur.guard.ending import conclude
from demur.guard.events import (
    Announcement,
    Event,
    decision_event,
    evaluation_event,
    outcome_event,
)
from demur.guard.feedback import Feedback
from demur.guard.inside import Inside
from demur.guard.passed_on import as_given
from demur.guard.plan import Plan
from demur.guard.recovery import Again, Final, Repair, Retrieve, choose, name_of
from demur.guard.repair import repair_prompt
from demur.guard.trace import Attempt, Guarded, Origin, Verdict
from demur.guard.widening import Widening
from demur.prompting import without_delimiters
from demur.runtime import ChatCall, Limit, RunnableCall, Scope, Steps, ask, ask_all, tell
from demur.schema import Evaluation, Sample, Usage
from demur.shapes import (
    CONTEXT_KEYS,
    as_documents,
    can_edit,
    edit_answer,
    find_answer,
    find_contexts,
    find_question,
    kind_of,
)


class GuardedCall:
    """One call of a guard. It belongs to that call alone, and so may keep what it learns."""

    def __init__(self, plan: Plan, input: Any, kwargs: Mapping[str, Any]) -> None:
        """The clock of the budget starts here."""
        self.plan = plan
        self.input = input
        self.kwargs = kwargs
        self.scope = Scope(account=plan.budget.open())
        self.question = find_question(input, plan.question)
        self.tried: list[Tried] = []
        self._queries: tuple[str, ...] = ()
        self._widens = False
        self._started = time.monotonic()

    def run(self) -> Steps[Guarded[Any]]:
        """All of it."""
        answered = yield from self._run_chain(self.input, "chain")
        yield from self.judge(answered)
        return (yield from self.finish())

    def finish(self) -> Steps[Guarded[Any]]:
        """What comes after the first attempt.

        Raises:
            AnswerRejected: Nothing is let through.
            EvaluatorFailed: An evaluator could not decide, with `on_error="raise"`.
        """
        while True:
            step = self._next()
            if isinstance(step, Ended):
                return (yield from self._conclude(step))
            attempt, failures = self.tried[-1].attempt, self._feedback().failures
            event = decision_event(len(self.tried), attempt.verdict, name_of(step), failures)
            yield from self._announce(event)
            answered = yield from self._answer_again(step)
            if isinstance(answered, Ended):
                return (yield from self._conclude(answered))
            yield from self.judge(answered)

    def chain_call(self, input: Any) -> ChainCall:
        """The chain's next run."""
        widening = Widening(self._queries)
        return ChainCall(self.plan.chain, input, self.kwargs, len(self.tried) + 1, widening)

    def answered(self, call: ChainCall, output: Any, origin: Origin) -> Answered:
        """What a run of the chain gave.

        Raises:
            DemurError: There is no answer in it.
        """
        self._widens = self._widens or call.widening.met
        text = find_answer(output, self.plan.answer)
        contexts = find_contexts(call.input, output, call.capture.documents, self.plan.contexts)
        abstained = _folded(text) in map(_folded, call.capture.refusals)
        self._settle(call.capture.usage)
        return Answered(output, text, contexts, origin, call.capture.usage, abstained)

    def evaluate(self, sample: Sample) -> Steps[tuple[Evaluation, ...]]:
        """What the evaluators find of a sample, side by side."""
        outcomes = yield from ask_all(
            [
                Inside(RunnableCall(runnable, sample, name))
                for name, runnable in self.plan.evaluators
            ]
        )
        names = [name for name, _ in self.plan.evaluators]
        return tuple(map(as_verdict, names, outcomes))

    def announce_evaluations(self, evaluations: Sequence[Evaluation]) -> Steps[None]:
        """Tell callbacks what was found of the coming attempt."""
        number = len(self.tried) + 1
        yield from self._announce(
            *(evaluation_event(number, evaluation) for evaluation in evaluations)
        )

    def record(self, answered: Answered, evaluations: Sequence[Evaluation]) -> None:
        """Count an attempt."""
        answers = [_folded(tried.attempt.answer) for tried in self.tried]
        this = _folded(answered.text)
        attempt = Attempt(
            origin=answered.origin,
            recovery=answered.recovery,
            feedback=answered.feedback,
            question=self.question,
            answer=answered.text,
            contexts=answered.contexts,
            evaluations=tuple(evaluations),
            verdict="abstained" if answered.abstained else self._verdict_of(evaluations),
            usage=answered.usage,
        )
        same_as = answers.index(this) + 1 if this in answers else None
        self.tried.append(Tried(attempt, answered.output, same_as))
        self._settle()

    def _verdict_of(self, evaluations: Sequence[Evaluation]) -> Verdict:
        return verdict_of(evaluations, self.plan.on_abstain, len(self.plan.evaluators))

    # --- An answer and its verdict -----------------------------------------------------------

    def _run_chain(self, input: Any, origin: Origin) -> Steps[Answered]:
        call = self.chain_call(input)
        output = yield from ask(call)
        if origin == "feedback":
            kept = (*CONTEXT_KEYS, self.plan.contexts)
            output = as_given(output, input, self.input, kept)
        return self.answered(call, output, origin)

    def judge(self, answered: Answered) -> Steps[None]:
        """Judge an answer, unless that is known, and count it as an attempt."""
        this = _folded(answered.text), answered.contexts
        known = next(
            (t for t in self.tried if (_folded(t.attempt.answer), t.attempt.contexts) == this), None
        )
        if answered.abstained:
            evaluations: Sequence[Evaluation] = ()
        elif known is not None:
            # Nothing new to judge; what it cost is counted where it was spent.
            free = {"usage": Usage()}
            evaluations = [
                evaluation.model_copy(update=free) for evaluation in known.attempt.evaluations
            ]
        else:
            sample = Sample(
                question=self.question, answer=answered.text, contexts=answered.contexts
            )
            evaluations = yield from self.evaluate(sample)
            yield from self.announce_evaluations(evaluations)
        self.record(answered, evaluations)

    # --- Another answer ----------------------------------------------------------------------

    def _next(self) -> Again | Ended:
        """What is done about the last attempt."""
        last, number = self.tried[-1], len(self.tried)
        exhausted = self._exhausted
        if last.attempt.verdict == "passed":
            return Ended(f"attempt {number} passed")
        if last.attempt.verdict == "nothing_to_check":
            return Ended(f"attempt {number} states nothing that could be checked")
        if last.attempt.verdict == "abstained":
            return Ended(f"attempt {number} is a refusal by a guard inside the chain")
        if last.attempt.verdict == "undetermined":
            if exhausted:
                return self._out_of(exhausted)
            undecided = next(e for e in last.attempt.evaluations if e.undetermined)
            why = f"{undecided.name} could not decide about attempt {number}"
            return Ended(_because(why, undecided.cause))
        recovery = choose(self.plan.policy, self._feedback().failures)
        if isinstance(recovery, Final):
            return Ended(f"attempt {number} was rejected", recovery)
        # Where the chain repeats itself, the guard's model may still find another answer.
        repeats = last.same_as is not None
        if repeats and (last.attempt.origin == "repair" or not self._can_repair()):
            return Ended(f"attempt {number} gave the answer of attempt {last.same_as} again")
        if number >= self.plan.budget.attempts:
            tries = f"{number} attempt{'s' if number > 1 else ''}"
            return Ended(f"no answer passed in {tries}", limit="attempts")
        if exhausted:
            return self._out_of(exhausted)
        return Repair(recovery.instruction) if repeats else recovery

    @property
    def _exhausted(self) -> Limit | None:
        """The limit of the budget that was reached, if one was."""
        return None if self.scope.account is None else self.scope.account.exhausted

    def _out_of(self, limit: Limit, usage: Usage | None = None) -> Ended:
        assert self.scope.account is not None
        why = f"no answer passed, and {self.scope.account.describe(limit)}"
        return Ended(why, limit=limit, usage=usage or Usage())

    def _answer_again(self, recovery: Again) -> Steps[Answered | Ended]:
        """Another answer, or why there is none."""
        feedback = self._feedback(recovery.instruction)
        if isinstance(recovery, Retrieve):
            self._queries = tuple(dict.fromkeys([*self._queries, *feedback.queries]))
            if self.plan.retriever is not None:
                feedback = yield from _search(self.plan.retriever, feedback)
        answered: Answered | Ended
        if self._repairs(recovery):
            answered = yield from self._repair(feedback)
        elif self.plan.with_feedback is not None:
            changed = self.plan.with_feedback(self.input, feedback)
            answered = yield from self._run_chain(changed, "feedback")
            contexts = distinct([*answered.contexts, *feedback.documents])
            answered = replace(answered, contexts=contexts, feedback=feedback)
        else:
            answered = yield from self._run_chain(self.input, "chain")
            if isinstance(recovery, Retrieve) and self._widens:
                answered = replace(answered, feedback=feedback)
        if isinstance(answered, Ended):
            return answered
        return replace(answered, recovery=name_of(recovery))

    def _repairs(self, recovery: Again) -> bool:
        """Whether it is the guard's model that answers now, and not the chain."""
        if isinstance(recovery, Repair) or not self._can_repair():
            return self._can_repair()
        finds_more = isinstance(recovery, Retrieve) and self._widens
        return self.plan.with_feedback is None and not finds_more

    def _can_repair(self) -> bool:
        editable = can_edit(self.tried[-1].output, self.plan.answer)
        return self.plan.chat is not None and editable

    def _repair(self, feedback: Feedback) -> Steps[Answered | Ended]:
        assert self.plan.chat is not None
        last = self.tried[-1]
        contexts = distinct([*last.attempt.contexts, *feedback.documents])
        prompt = repair_prompt(feedback, contexts)
        (outcome,) = yield from ask_all([Inside(ChatCall(self.plan.chat, prompt, "repair"))])
        text = "" if outcome.error else without_delimiters(outcome.value.text)
        if not text:
            if outcome.error and self._exhausted:
                return self._out_of(self._exhausted, outcome.usage)
            why = "the answer could not be repaired"
            cause = outcome.cause if outcome.error else "the model's reply is empty"
            return Ended(_because(why, cause), error=outcome.error, usage=outcome.usage)
        output = edit_answer(last.output, self.plan.answer, lambda _: text)
        return Answered(output, text, contexts, "repair", outcome.usage, feedback=feedback)

    # --- The end -----------------------------------------------------------------------------

    def _conclude(self, ended: Ended) -> Steps[Guarded[Any]]:
        usage = self._usage() + ended.usage
        ending = conclude(self.plan, self.tried, ended, usage, time.monotonic() - self._started)
        event = outcome_event(ending.trace, ending.refusal)
        yield from tell(Announcement((event,), ending.trace))
        if ending.error is not None:
            raise ending.error
        return Guarded(ending.output, ending.trace)

    def _feedback(self, instruction: str = "") -> Feedback:
        """Why the last attempt was not let through."""
        return feedback_on(self.tried[-1].attempt, len(self.tried), instruction)

    def _usage(self) -> Usage:
        return sum((tried.attempt.cost for tried in self.tried), Usage())

    def _settle(self, further: Usage | None = None) -> None:
        """Count what those calls spent that were not reserved."""
        if self.scope.account is not None:
            self.scope.account.settle_all(self._usage() + (further or Usage()))

    # --- Callbacks ---------------------------------------------------------------------------

    def _announce(self, *events: Event) -> Steps[None]:
        yield from tell(Announcement(events))


def _search(retriever: Runnable[str, Any], feedback: Feedback) -> Steps[Feedback]:
    """The feedback with what a retriever finds for its queries."""
    searches = [Inside(RunnableCall(retriever, query, "retrieval")) for query in feedback.queries]
    outcomes = yield from ask_all(searches)
    sources: list[Document] = []
    errors: list[str] = []
    for outcome in outcomes:
        if outcome.error is not None:
            errors.append(outcome.error)
        elif (documents := as_documents(outcome.value)) is not None:
            sources += documents
        else:
            errors.append(f"the retriever returned {kind_of(outcome.value)}, not documents")
    changes = {"documents": distinct(sources), "errors": tuple(errors)}
    return feedback.model_copy(update=changes)


def _because(what: str, cause: str | None) -> str:
    return what if cause is None else f"{what} ({cause})"


def _folded(answer: str) -> str:
    """What an answer says, whatever its spacing and case."""
    return " ".join(answer.split()).casefold()
