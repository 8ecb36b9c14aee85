"""Run a guarded call, from the chain's first answer to what leaves at the end.

Everything here is generators (`Steps`), so that the code is written once for threads and for
asyncio.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from demur.evaluators import is_mistake
from demur.guard.arguments import GuardArguments
from demur.guard.chain import ChainCall
from demur.guard.citing import recited
from demur.guard.conversation import conversation_of, facts_of
from demur.guard.ending import Ended, Tried, ending_of
from demur.guard.events import Announcement, decision_event, evaluation_event, outcome_event
from demur.guard.feedback import Feedback
from demur.guard.inside import Inside
from demur.guard.policies import fitting, for_undetermined
from demur.guard.prompts import repair_prompt
from demur.guard.recoveries import Again, Cite, Final, Repair, Retrieve, Strip, name_of
from demur.guard.stripping import can_strip, stripped
from demur.guard.trace import Attempt, Guarded, Origin, Verdict
from demur.guard.verdicts import as_verdict, feedback_on, verdict_of, warn_of
from demur.guard.widening import Widening
from demur.runtime import GRACE, ChatCall, Limit, RunnableCall, Scope, Steps, ask, ask_all
from demur.runtime.prompting import without_delimiters
from demur.schema import Evaluation, Failure, Sample, Usage
from demur.shapes import (
    CONTEXT_KEYS,
    Answer,
    NoSuchForm,
    alike,
    as_documents,
    as_given,
    calls_last,
    distinct,
    find_answer,
    find_contexts,
    find_question,
    kind_of,
    prompt_messages,
    with_found,
)

_OVER: dict[Verdict, str] = {
    "passed": "passed",
    "nothing_to_check": "states nothing that could be checked",
    "abstained": "is a refusal by a guard inside the chain",
}
"""The verdicts after which no further answer is asked for, as the reason of the end says them."""
_OF_NO_USE = "without the failing parts, nothing is left that answers the question"


@dataclass(frozen=True)
class Answered:
    """Hold an answer that is not judged yet."""

    answer: Answer
    """The answer, with the output that the guard would return."""
    contexts: tuple[Document, ...]
    origin: Origin
    usage: Usage
    abstained: bool = False
    """Whether the answer is the refusal of another guard inside the chain."""
    recovery: str | None = None
    feedback: Feedback | None = None
    style: str | None = None
    """The instructions that the chain gave its model, if they are known."""
    removed: tuple[str, ...] = ()
    """The texts that were taken out of the answer."""

    @property
    def text(self) -> str:
        """Return the text to judge."""
        return self.answer.text


class GuardedCall:
    """Run one call of a guard, and keep what it learns for this call alone."""

    def __init__(
        self, guard: GuardArguments[Any, Any], input: Any, kwargs: Mapping[str, Any]
    ) -> None:
        """Prepare the call. The clock of the budget starts here."""
        self.guard = guard
        self.input = input
        self.kwargs = kwargs
        self.scope = Scope(account=guard.budget.open())
        self.question = find_question(input, guard.question)
        self.tried: list[Tried] = []
        self._searches: dict[str, tuple[str, ...]] = {}
        """The queries that each widened retriever adds to its own, by the retriever's key."""
        self._asked: set[str] = set()
        """The keys of the widened retrievers that the chain has asked."""
        self._by: Again | None = None
        """The recovery that led to the last answer."""
        self._spent: list[tuple[Again, str]] = []
        """The recoveries that are not worth another try, each with the reason: they led to an
        answer that was there before, or to one that could not be judged."""
        self._style: str | None = None
        """The instructions that the chain gave its model in its latest run, if they are known."""
        self._started = time.monotonic()

    def run(self) -> Steps[Guarded[Any]]:
        """Run the whole call."""
        answered = yield from self._run_chain(self.input, "chain")
        yield from self.judge(answered)
        return (yield from self.finish())

    def finish(self) -> Steps[Guarded[Any]]:
        """Do what follows the first attempt: recover, judge again, and end the call.

        Raises:
            AnswerRejected: No answer was let through.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
        """
        while True:
            step = self._next()
            if isinstance(step, Ended):
                return (yield from self._conclude(step))
            attempt, failures = self.tried[-1].attempt, self._feedback().failures
            event = decision_event(len(self.tried), attempt.verdict, name_of(step), failures)
            yield Announcement((event,))
            self._by = step
            answered = yield from self._answer_again(step)
            if isinstance(answered, Ended):
                return (yield from self._conclude(answered))
            yield from self.judge(answered)

    # --- An answer of the chain ---------------------------------------------------------------

    def _run_chain(self, input: Any, origin: Origin) -> Steps[Answered]:
        call = self.chain_call(input)
        output = yield from ask(call)
        if origin == "feedback":
            output = as_given(output, input, self.input, [*self.kept])
        return self.answered(call, output, origin)

    def chain_call(self, input: Any) -> ChainCall:
        """Return the chain's next run, which has not started."""
        widening = Widening(dict(self._searches))
        return ChainCall(self.guard.chain, input, self.kwargs, len(self.tried) + 1, widening)

    def answered(self, call: ChainCall, output: Any, origin: Origin) -> Answered:
        """Return the answer in the output of a run of the chain.

        Raises:
            DemurError: The output has no answer.
        """
        self._asked |= call.widening.met
        answer = self._answer_in(output)
        contexts = self.held_against(self.find_contexts(call, output))
        abstained = _folded(answer.text) in map(_folded, call.capture.refusals)
        usage, style = call.capture.usage, call.capture.instructions
        self._settle(usage)
        self._style = style
        return Answered(answer, contexts, origin, usage, abstained, style=style)

    def _answer_in(self, output: Any) -> Answer:
        return find_answer(output, self.guard.answer, self.input, self.kept)

    @property
    def kept(self) -> set[str]:
        """Return the keys of an output that hold sources."""
        named = self.guard.contexts
        return {*CONTEXT_KEYS, *([named] if isinstance(named, str) else [])}

    def find_contexts(self, call: ChainCall, output: Any) -> tuple[Document, ...]:
        """Return the documents that a run of the chain based its answer on.

        Raises:
            DemurError: The documents are not where the guard was told to look.
        """
        reader = self.guard.contexts
        # The input that a `tell` made may quote the rejected answer, and the user's function
        # expects the user's own input.
        given = self.input if callable(reader) else call.input
        return find_contexts(given, output, call.capture.documents, reader)

    def held_against(self, contexts: tuple[Document, ...]) -> tuple[Document, ...]:
        """Return an answer's contexts, with the conversation if the guard is to read it."""
        said = self._conversation
        return calls_last([*contexts, *said]) if said else contexts

    @cached_property
    def _conversation(self) -> tuple[Document, ...]:
        where = self.guard.conversation
        if where is False:
            return ()
        return conversation_of(self.input, self.question, None if where is True else where)

    def known(self, instructions: str | None) -> tuple[Document, ...]:
        """Return the facts in the instructions of a call, if the guard is to read them."""
        return facts_of(self.input, instructions) if self.guard.system else ()

    # --- The verdict on it --------------------------------------------------------------------

    def judge(self, answered: Answered) -> Steps[None]:
        """Judge an answer and record it as an attempt, reusing the evaluations of an equal one."""
        this = _folded(answered.text), answered.contexts
        known = next(
            (t for t in self.tried if (_folded(t.attempt.answer), t.attempt.contexts) == this), None
        )
        if answered.abstained:
            evaluations: Sequence[Evaluation] = ()
        elif known is not None:
            # The first of the equal attempts has counted what these evaluations cost.
            free = {"usage": Usage()}
            evaluations = [
                evaluation.model_copy(update=free) for evaluation in known.attempt.evaluations
            ]
        else:
            sample = Sample(
                question=self.question,
                answer=answered.text,
                contexts=answered.contexts,
                known=self.known(answered.style or self._style),
            )
            evaluations = yield from self.evaluate(sample)
            yield from self.announce_evaluations(evaluations)
        self.record(answered, evaluations)

    def evaluate(self, sample: Sample) -> Steps[tuple[Evaluation, ...]]:
        """Return the evaluations of a sample, made side by side and within the time limit.

        Raises:
            DemurError: An evaluator gave no verdict.
            Exception: An evaluator raised it, and `is_mistake` says that it is a programming error.
        """
        named = [(evaluator.get_name(), evaluator) for evaluator in self.guard.evaluators]
        scope = self.scope.ending_within(self.guard.budget.judge_seconds)
        calls = [
            # Work inside an evaluator gets the grace once. The evaluator needs it twice, to report
            # what that work found.
            RunnableCall(evaluator, sample, name, partial(is_mistake, evaluator), 2 * GRACE)
            for name, evaluator in named
        ]
        outcomes = yield from ask_all([Inside(call, scope) for call in calls])
        evaluations = tuple(
            as_verdict(name, outcome) for (name, _), outcome in zip(named, outcomes, strict=True)
        )
        for evaluation in evaluations:
            if evaluation.undetermined:
                warn_of(evaluation, sample)
        return evaluations

    def announce_evaluations(self, evaluations: Sequence[Evaluation]) -> Steps[None]:
        """Tell the callbacks the evaluations of the coming attempt."""
        number = len(self.tried) + 1
        yield Announcement(tuple(evaluation_event(number, each) for each in evaluations))

    def record(self, answered: Answered, evaluations: Sequence[Evaluation]) -> None:
        """Record an answer and its evaluations as an attempt."""
        answers = [_folded(tried.attempt.answer) for tried in self.tried]
        this = _folded(answered.text)
        verdict: Verdict = "abstained"
        if not answered.abstained:
            judges = len(self.guard.evaluators)
            verdict = verdict_of(evaluations, self.guard.on_abstain, judges)
        attempt = Attempt(
            origin=answered.origin,
            recovery=answered.recovery,
            feedback=answered.feedback,
            question=self.question,
            answer=answered.text,
            removed=answered.removed,
            contexts=answered.contexts,
            evaluations=tuple(evaluations),
            verdict=verdict,
            usage=answered.usage,
        )
        same_as = answers.index(this) + 1 if this in answers else None
        self.tried.append(Tried(attempt, answered.answer, answered.style, same_as))
        self._settle()

    # --- What is done about it ----------------------------------------------------------------

    def _next(self) -> Again | Ended:
        """Return the next recovery, or why the call ends after the last attempt."""
        last, number = self.tried[-1], len(self.tried)
        exhausted = self._exhausted
        if last.attempt.verdict in _OVER:
            return Ended(f"attempt {number} {_OVER[last.attempt.verdict]}")
        if last.attempt.verdict == "undetermined":
            if exhausted:
                return self._out_of(exhausted)
            undecided = next(e for e in last.attempt.evaluations if e.undetermined)
            why = _because(
                f"{undecided.name} could not decide about attempt {number}", undecided.cause
            )
            if self._by is not None:  # so that a judge that is down is not asked forever
                self._spent.append((self._by, why))
            recovery = self._choose(for_undetermined(self.guard._policy), why)
            again = not isinstance(recovery, Ended)
            return Ended(why) if again and number >= self.guard.budget.attempts else recovery
        if last.same_as is not None and self._by is not None:
            why = f"attempt {number} gave the answer of attempt {last.same_as} again"
            self._spent.append((self._by, why))
        recovery = self._choose(
            fitting(self.guard._policy, self._feedback().failures),
            f"attempt {number} was rejected",
        )
        if isinstance(recovery, Ended):
            return recovery
        if number >= self.guard.budget.attempts:
            tries = f"{number} attempt{'s' if number > 1 else ''}"
            return Ended(f"no answer passed in {tries}", limit="attempts")
        if exhausted:
            return self._out_of(exhausted)
        return recovery

    @property
    def _exhausted(self) -> Limit | None:
        """Return the limit of the budget that was reached, or None."""
        return None if self.scope.account is None else self.scope.account.exhausted

    def _out_of(self, limit: Limit, usage: Usage | None = None) -> Ended:
        assert self.scope.account is not None
        why = f"no answer passed, and {self.scope.account.describe(limit)}"
        return Ended(why, limit=limit, usage=usage or Usage())

    def _choose(self, recoveries: Iterable[Again | Final], why: str) -> Again | Ended:
        """Return the first recovery that can help, or the end of the call if none can.

        `why` is the reason of the end if no recovery gives a better one.
        """
        for recovery in recoveries:
            if isinstance(recovery, Final):
                return Ended(why, recovery)
            hindrance = self._hindrance(recovery, why)
            if hindrance is None:
                return recovery
            why = hindrance
        return Ended(why)

    def _hindrance(self, recovery: Again, rejected: str) -> str | None:
        """Return why a recovery cannot help, or None if it can.

        `rejected` says why a recovery is needed, and begins the reason.
        """
        for spent, why in self._spent:
            if alike(spent, recovery):
                return why
        answers = recovery.then if isinstance(recovery, Retrieve) else recovery
        edits, last = isinstance(answers, Repair | Strip | Cite), self.tried[-1]
        if edits and not last.answer.takes_repair:
            return f"{rejected}, and its output can hold no other text"
        if isinstance(recovery, Cite):
            if self._feedback().failures != (Failure.CITATION,):
                return f"{rejected}, and not for its citations alone"
            if not last.answer.is_text or recited(last.attempt) is None:
                return f"{rejected}, and its citations cannot be corrected"
        if isinstance(recovery, Strip) and not can_strip(recovery, last.attempt, last.answer):
            return f"{rejected}, and {_OF_NO_USE}"
        widened = recovery.widened if isinstance(recovery, Retrieve) else None
        if widened is not None and widened.key not in self._asked:
            return f"{rejected}, and the chain did not ask the retriever that is to find more"
        return None

    def _feedback(self, instruction: str = "") -> Feedback:
        """Return why the last attempt was not let through."""
        return feedback_on(self.tried[-1].attempt, len(self.tried), instruction)

    # --- Another answer -----------------------------------------------------------------------

    def _answer_again(self, recovery: Again) -> Steps[Answered | Ended]:
        """Return another answer, or why there is none."""
        if isinstance(recovery, Strip):
            return (yield from self._strip(recovery))
        if isinstance(recovery, Cite):
            text = recited(self.tried[-1].attempt)
            assert text is not None  # else `_hindrance` would have excluded the recovery
            return self._edited(recovery, self.tried[-1].answer.reworded(text))
        answers = recovery.then if isinstance(recovery, Retrieve) else recovery
        feedback = self._feedback(answers.instruction)
        if isinstance(recovery, Retrieve):
            feedback = yield from self._search(recovery, feedback)
        if isinstance(answers, Repair):
            answered = yield from self._repair(answers, feedback)
            if isinstance(answered, Ended):
                return answered
        elif answers.tell is not None:
            changed = answers.tell(self.input, feedback)
            answered = yield from self._run_chain(changed, "feedback")
            contexts = calls_last([*answered.contexts, *feedback.documents])
            answered = replace(
                answered,
                answer=self._with_found(feedback, answered.answer.output),
                contexts=contexts,
                feedback=feedback,
            )
        else:
            answered = yield from self._run_chain(self.input, "chain")
            if isinstance(recovery, Retrieve):  # the widened retriever searched for its claims
                answered = replace(answered, feedback=feedback)
        return replace(answered, recovery=name_of(recovery))

    def _search(self, recovery: Retrieve, feedback: Feedback) -> Steps[Feedback]:
        """Return the feedback with the documents found.

        A retriever in the chain does not search now: the method notes the queries for its next run.
        """
        if recovery.widened is None:
            return (yield from _with_documents(recovery.retriever, feedback))
        key = recovery.widened.key
        queries = [*self._searches.get(key, ()), *feedback.queries]
        self._searches[key] = tuple(dict.fromkeys(queries))
        return feedback

    def _repair(self, repair: Repair, feedback: Feedback) -> Steps[Answered | Ended]:
        assert isinstance(repair.model, BaseChatModel)  # `prepared` found it
        last = self.tried[-1]
        contexts = calls_last([*last.attempt.contexts, *feedback.documents])
        if repair.prompt is None:
            prompt = repair_prompt(feedback, contexts, last.answer.form, last.style)
        else:
            prompt = prompt_messages(repair.prompt(feedback, contexts))
        (outcome,) = yield from ask_all([Inside(ChatCall(repair.model, prompt, "repair"))])
        text = "" if outcome.error else without_delimiters(outcome.value.text)
        why = "the answer could not be repaired"
        if not text:
            if outcome.error and self._exhausted:
                return self._out_of(self._exhausted, outcome.usage)
            cause = outcome.cause if outcome.error else "the model's reply is empty"
            return Ended(_because(why, cause), error=outcome.error, usage=outcome.usage)
        try:
            output = last.answer.repaired(text)
        except NoSuchForm as error:
            return Ended(_because(why, str(error)), usage=outcome.usage)
        answer = self._with_found(feedback, output)
        return Answered(
            answer, contexts, "repair", outcome.usage, feedback=feedback, style=last.style
        )

    def _strip(self, strip: Strip) -> Steps[Answered | Ended]:
        """Return the last answer without what fails, or why nothing useful would be left."""
        last = self.tried[-1]
        left = yield from stripped(strip, last.attempt, last.answer)
        if left.output is None:
            return Ended(
                f"attempt {len(self.tried)} was rejected, and {_OF_NO_USE}", usage=left.usage
            )
        return self._edited(strip, left.output, left.removed, left.usage)

    def _edited(
        self,
        recovery: Strip | Cite,
        output: Any,
        removed: Sequence[str] = (),
        usage: Usage | None = None,
    ) -> Answered:
        """Return the last answer after a change, which is to be judged again."""
        last = self.tried[-1]
        return Answered(
            self._answer_in(output),
            last.attempt.contexts,
            "edit",
            usage or Usage(),
            recovery=name_of(recovery),
            style=last.style,
            removed=(*last.attempt.removed, *removed),
        )

    def _with_found(self, feedback: Feedback, output: Any) -> Answer:
        """Return the answer in an output, with the feedback's documents added to the output."""
        found = feedback.documents
        return self._answer_in(with_found(output, found, self.kept) if found else output)

    # --- The end ------------------------------------------------------------------------------

    def _conclude(self, ended: Ended) -> Steps[Guarded[Any]]:
        usage = self._usage() + ended.usage
        ending = ending_of(self.guard, self.tried, ended, usage, time.monotonic() - self._started)
        event = outcome_event(ending.trace, ending.refusal)
        yield Announcement((event,), ending.trace)
        if ending.error is not None:
            raise ending.error
        return Guarded(ending.output, ending.trace)

    def _usage(self) -> Usage:
        return sum((tried.attempt.cost for tried in self.tried), Usage())

    def _settle(self, further: Usage | None = None) -> None:
        """Count the usage of calls that were not reserved."""
        if self.scope.account is not None:
            self.scope.account.settle_all(self._usage() + (further or Usage()))


def _with_documents(retriever: Runnable[str, Any], feedback: Feedback) -> Steps[Feedback]:
    """Return the feedback with the documents that a retriever finds for its queries."""
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
    """Return an answer in lower case with single spaces, to compare answers."""
    return " ".join(answer.split()).casefold()
