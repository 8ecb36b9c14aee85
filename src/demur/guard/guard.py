"""Guard: a Runnable around any chain that checks each answer and acts on what is found."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableSerializable
from langchain_core.runnables.base import RunnableLike, coerce_to_runnable
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import ConfigurableFieldSpec, Input, Output
from langchain_core.utils.pydantic import TypeBaseModel
from pydantic import ConfigDict, PrivateAttr

from demur.guard.attempts import (
    Answered,
    ChainCall,
    Ended,
    Tried,
    as_evaluation,
    best_of,
    feedback_on,
    no_verdict,
    verdict_of,
)
from demur.guard.capture import distinct
from demur.guard.feedback import Feedback
from demur.guard.recovery import Abstain, Annotate, Block, Policy, Recovery, make_policy
from demur.guard.repair import repair_prompt
from demur.guard.shapes import (
    Reader,
    as_documents,
    can_edit,
    edit_answer,
    find_answer,
    find_contexts,
    find_question,
    kind_of,
)
from demur.guard.trace import AnswerRejected, Attempt, Guarded, Origin, Outcome, Trace
from demur.models.calls import ChatCall, RunnableCall, Steps, adrive, ask, drive
from demur.models.isolation import without_delimiters
from demur.models.resolve import resolve_model
from demur.schema import Evaluation, Sample, Usage


class Guard(RunnableSerializable[Input, Output]):
    """Check every answer of a chain, and recover when it fails.

    A guard takes the chain's input and returns the chain's output. Question, answer and contexts
    are found in the usual shapes: a string, a message, a mapping with `input`, `question` or
    `query`; `answer`, `output`, `result` or `response`; `context`, `contexts`, `source_documents`
    or `documents`. Where the output has no contexts, they are what the chain's own retrievers
    returned. Nothing leaves before it was checked: `stream` gives the whole answer at once.

    An answer passes when every evaluation has `passed` or states nothing to check (`Abstain`). One
    that an evaluator could not decide about does not pass, and is not answered again.

    Example:
        >>> guarded = Guard(chain, RefChecker("openai:gpt-4o-mini"))
        >>> guarded.invoke({"input": "How tall is the tower?"})
        >>> guarded.with_trace().invoke({"input": "How tall is the tower?"}).trace.outcome

    Args:
        chain: Any Runnable, or what LangChain makes one of: a function, a dict.
        evaluators: At least one Runnable from `Sample` to `Evaluation`. All are run on every
            answer, side by side.
        on_fail: What to do about an answer that fails, in order: a `Regenerate`, if at all, then
            `Abstain`, `Annotate` or `Block`; or their names. None: `(Regenerate(), Abstain())`.
        max_attempts: How often the question is answered at most, the first time included. None: 2
            with `Regenerate`, else 1.
        question: Where the question is: a key of the input, or a function of the input.
        answer: Where the answer is: a key of the output, or a function of the output. With a
            function, only a string or message can be replaced, and as a whole.
        contexts: Where the contexts are: a key of the output or the input, or a function of the
            output.
        model: A chat model, or a name for `resolve_model`, that answers from the documents when the
            chain's answer failed.
        retriever: A Runnable from a query to documents. Before the question is answered again, it
            is asked about each failed claim; what it finds is in the feedback, is shown to `model`,
            and is among the contexts of the next answer.

    Raises:
        ValueError: There is no evaluator, or one without a threshold; an argument is out of its
            range.
        TypeError: Something is no Runnable, no chat model, or no recovery.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    chain: Runnable[Input, Output]
    evaluators: tuple[Runnable[Any, Any], ...]
    policy: Policy
    question: Reader | None = None
    answer: Reader | None = None
    contexts: Reader | None = None
    model: str | BaseChatModel | None = None
    retriever: Runnable[str, Any] | None = None

    _chat: BaseChatModel | None = PrivateAttr(default=None)

    def __init__(
        self,
        chain: Runnable[Input, Output] | RunnableLike[Input, Output],
        *evaluators: Runnable[Any, Evaluation] | RunnableLike[Any, Evaluation],
        on_fail: Recovery | str | Sequence[Recovery | str] | None = None,
        max_attempts: int | None = None,
        question: Reader | None = None,
        answer: Reader | None = None,
        contexts: Reader | None = None,
        model: str | BaseChatModel | None = None,
        retriever: Runnable[str, Any] | None = None,
    ) -> None:
        """See the class."""
        policy = make_policy(on_fail, max_attempts)
        if not evaluators:
            raise ValueError(
                "a guard needs an evaluator to judge the answers: Guard(chain, RefChecker(model))"
            )
        if retriever is not None and model is None and policy.regenerate.with_input is None:
            raise ValueError(
                "retriever= finds documents for a better answer, and nothing would read them: give "
                "model= too, or Regenerate(with_input=...)"
            )
        fields: dict[str, Any] = {
            "chain": coerce_to_runnable(chain),
            "evaluators": tuple(coerce_to_runnable(evaluator) for evaluator in evaluators),
            "policy": policy,
            "question": question,
            "answer": answer,
            "contexts": contexts,
            "model": model,
            "retriever": retriever,
        }
        super().__init__(**fields)
        for evaluator in self.evaluators:
            if getattr(evaluator, "threshold", 0) is None:
                raise ValueError(no_verdict(evaluator.get_name()))

    def model_post_init(self, context: Any, /) -> None:
        """Find the model, so that a wrong name shows now and not in a call."""
        super().model_post_init(context)
        self._chat = None if self.model is None else resolve_model(self.model)

    # --- As a Runnable ---------------------------------------------------------------------

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Answer, checked. `kwargs` go to the chain.

        Raises:
            AnswerRejected: No answer was let through.
            DemurError: The answer cannot be found, or an evaluator gives no verdict.
        """
        return self._call_with_config(self._output, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """As `invoke`, natively asynchronous."""
        return await self._acall_with_config(self._aoutput, input, config, **kwargs)

    def with_trace(self) -> Runnable[Input, Guarded[Output]]:
        """This guard as a Runnable that returns the output together with its `Trace`."""
        return RunnableLambda(self._guarded, self._aguarded, name=self.get_name())

    def _output(
        self,
        input: Input,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Output:
        return self._guarded(input, run_manager, config, **kwargs).output

    async def _aoutput(
        self,
        input: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Output:
        return (await self._aguarded(input, run_manager, config, **kwargs)).output

    def _guarded(
        self,
        input: Input,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Guarded[Output]:
        child = patch_config(config, callbacks=run_manager.get_child())
        return drive(self._steps(input, kwargs), child, None)[0]

    async def _aguarded(
        self,
        input: Input,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Guarded[Output]:
        child = patch_config(config, callbacks=run_manager.get_child())
        return (await adrive(self._steps(input, kwargs), child, None))[0]

    @property
    def InputType(self) -> type[Input]:  # noqa: N802  # LangChain's name
        """The chain's."""
        return self.chain.InputType

    @property
    def OutputType(self) -> type[Output]:  # noqa: N802  # LangChain's name
        """The chain's."""
        return self.chain.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The chain's."""
        return self.chain.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The chain's."""
        return self.chain.get_output_schema(config)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The chain's."""
        return self.chain.config_specs

    def __getstate__(self) -> dict[Any, Any]:
        """Leave out what the fields name: it is found again on the other side."""
        return {**super().__getstate__(), "__pydantic_private__": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.model_post_init(None)

    # --- A guarded call --------------------------------------------------------------------

    def _steps(self, input: Any, kwargs: Mapping[str, Any]) -> Steps[Guarded[Any]]:
        started = time.monotonic()
        question = find_question(input, self.question)
        answered = yield from self._run_chain(input, kwargs, 1, "chain")
        tried = [(yield from self._judge(question, answered, []))]
        while (ended := self._end(tried)) is None:
            another = yield from self._answer_again(input, kwargs, tried)
            if isinstance(another, Ended):
                ended = another
                break
            tried.append((yield from self._judge(question, another, tried)))
        return self._conclude(tried, ended, time.monotonic() - started)

    def _run_chain(
        self, input: Any, kwargs: Mapping[str, Any], number: int, origin: Origin
    ) -> Steps[Answered]:
        call = ChainCall(self.chain, input, kwargs, number)
        (outcome,) = yield from ask([call])
        output, capture = outcome.value, call.capture
        text = find_answer(output, self.answer)
        contexts = find_contexts(input, output, capture.documents, self.contexts)
        return Answered(output, text, contexts, origin, capture.usage)

    def _answer_again(
        self, input: Any, kwargs: Mapping[str, Any], tried: Sequence[Tried]
    ) -> Steps[Answered | Ended]:
        """Another answer, or why there is none."""
        last, number = tried[-1], len(tried) + 1
        with_input = self.policy.regenerate.with_input
        repairs = self._chat is not None and can_edit(last.output, self.answer)
        if with_input is None and not repairs:
            return (yield from self._run_chain(input, kwargs, number, "chain"))
        feedback = yield from self._feedback(last.attempt)
        if with_input is None:
            return (yield from self._repair(last, feedback))
        changed = with_input(input, feedback)
        answered = yield from self._run_chain(changed, kwargs, number, "feedback")
        contexts = distinct([*answered.contexts, *feedback.documents])
        return replace(answered, contexts=contexts, feedback=feedback)

    def _feedback(self, attempt: Attempt) -> Steps[Feedback]:
        """Why an attempt was rejected, with what can be found about it."""
        feedback = feedback_on(attempt)
        if self.retriever is None:
            return feedback
        searches = [RunnableCall(self.retriever, query, "retrieval") for query in feedback.queries]
        outcomes = yield from ask(searches)
        found: list[Document] = []
        errors: list[str] = []
        for outcome in outcomes:
            documents = None if outcome.error else as_documents(outcome.value)
            if documents is None:
                returned = f"the retriever returned {kind_of(outcome.value)}, not documents"
                errors.append(outcome.error or returned)
            found += documents or ()
        changes = {"documents": distinct(found), "errors": tuple(errors)}
        return feedback.model_copy(update=changes)

    def _repair(self, last: Tried, feedback: Feedback) -> Steps[Answered | Ended]:
        assert self._chat is not None
        contexts = distinct([*last.attempt.contexts, *feedback.documents])
        prompt = repair_prompt(feedback, contexts)
        (outcome,) = yield from ask([ChatCall(self._chat, prompt, "repair")])
        text = "" if outcome.error else without_delimiters(outcome.value.text)
        if not text:
            why = outcome.error or "the model's reply is empty"
            return Ended(f"the answer could not be repaired: {why}", outcome.usage)
        output = edit_answer(last.output, self.answer, lambda _: text)
        return Answered(output, text, contexts, "repair", outcome.usage, feedback)

    def _judge(
        self, question: str | None, answered: Answered, earlier: Sequence[Tried]
    ) -> Steps[Tried]:
        answers = [_folded(one.attempt.answer) for one in earlier]
        this = _folded(answered.text)
        same = answers.index(this) if this in answers else None
        if same is not None and earlier[same].attempt.contexts == answered.contexts:
            # Nothing new to judge; what it cost is counted where it was spent.
            known = earlier[same].attempt.evaluations
            evaluations = [one.model_copy(update={"usage": Usage()}) for one in known]
        else:
            sample = Sample(question=question, answer=answered.text, contexts=answered.contexts)
            names = [evaluator.get_name() for evaluator in self.evaluators]
            outcomes = yield from ask(
                [
                    RunnableCall(evaluator, sample, name)
                    for evaluator, name in zip(self.evaluators, names, strict=True)
                ]
            )
            evaluations = list(map(as_evaluation, names, outcomes))
        attempt = Attempt(
            origin=answered.origin,
            feedback=answered.feedback,
            question=question,
            answer=answered.text,
            contexts=answered.contexts,
            evaluations=tuple(evaluations),
            verdict=verdict_of(evaluations),
            usage=answered.usage,
        )
        return Tried(attempt, answered.output, None if same is None else same + 1)

    def _end(self, tried: Sequence[Tried]) -> Ended | None:
        """Why there is no further attempt, or None if there is to be one."""
        last, number = tried[-1], len(tried)
        if last.attempt.verdict == "passed":
            return Ended(f"attempt {number} passed")
        if last.attempt.verdict == "undetermined":
            undecided = next(e for e in last.attempt.evaluations if e.undetermined)
            why = f"could not decide about attempt {number}: {undecided.error}"
            return Ended(f"{undecided.name} {why}")
        if last.same_as is not None:
            return Ended(f"attempt {number} gave the answer of attempt {last.same_as} again")
        if number >= self.policy.attempts:
            return Ended(f"no answer passed in {number} attempt{'s' if number > 1 else ''}")
        return None

    def _conclude(self, tried: Sequence[Tried], ended: Ended, seconds: float) -> Guarded[Any]:
        last, final = tried[-1], self.policy.final
        attempts = tuple(one.attempt for one in tried)
        trace = Trace(
            outcome=self._outcome(attempts),
            reason=ended.reason,
            attempts=attempts,
            usage=sum((attempt.cost for attempt in attempts), ended.usage),
            seconds=seconds,
        )
        if last.attempt.verdict == "passed":
            return Guarded(last.output, trace)
        held = best_of(tried) if isinstance(final, Annotate) else last
        if isinstance(final, Block) or not can_edit(held.output, self.answer):
            raise AnswerRejected(_rejection(trace, final), trace)
        if isinstance(final, Abstain):
            return Guarded(edit_answer(held.output, self.answer, lambda _: final.text), trace)
        note = final.text(feedback_on(held.attempt))
        return Guarded(edit_answer(held.output, self.answer, lambda t: f"{t}\n\n{note}"), trace)

    def _outcome(self, attempts: Sequence[Attempt]) -> Outcome:
        verdict = attempts[-1].verdict
        if verdict == "passed":
            return "passed" if len(attempts) == 1 else "recovered"
        if verdict == "undetermined":
            return "failed"
        return self.policy.final.outcome


def _folded(answer: str) -> str:
    """What an answer says, whatever its spacing and case."""
    return " ".join(answer.split()).casefold()


def _rejection(trace: Trace, final: Abstain | Annotate | Block) -> str:
    """Why nothing was let through, in words."""
    against = [e for e in trace.attempts[-1].evaluations if not e.passed and e.explanation]
    says = f" {against[0].name} says: {against[0].explanation}" if against else ""
    held = (
        ""
        if isinstance(final, Block)
        else " The chain's output cannot hold another text in the answer's place: name the key of "
        "the answer (answer='...'), or let the guard raise (on_fail=Block())."
    )
    return f"The answer was rejected: {trace.reason}.{says}{held}"
