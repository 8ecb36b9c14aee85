"""Middleware that checks an agent's answers before anyone sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable
from pydantic_core import to_json

from demur import DemurError
from demur.guard import Budget, Feedback
from demur.guard.messages import last_written, sources
from langchain_demur._messages import (
    calls_tools,
    only_last_speaks,
    question_in,
    tell,
    without_text,
)
from langchain_demur._run import (
    Call,
    Evaluator,
    Guards,
    NoAnswerYet,
    OnAbstain,
    OnError,
    OnFail,
    answering,
    held_back,
    options_of,
    read_state,
    rejected_in,
)

TellModel = Callable[[list[AnyMessage], Feedback], list[AnyMessage]]
"""From the messages that the model was sent, and what was wrong with its answer, to messages."""


class HallucinationMiddleware(AgentMiddleware[AgentState[Any], Any]):
    """Have every answer of an agent checked before it is streamed, stored or returned.

    What the model says without calling a tool is an answer. It is judged against what the tools
    returned since the user's last message (if nothing, in the whole conversation); one that fails
    is answered again with the problems told, and if none passes, a refusal takes its place under
    the same message id. The rejected answers and what the model was told of them are in no state.

    A message that calls tools goes through with its calls and without the text beside them. A
    structured response is judged as its JSON; one that is not let through is left out.

    List it before other middleware: what comes after it in the list is run anew for each attempt,
    and sees answers that were not judged.

    Example:
        >>> checks = HallucinationMiddleware(RefChecker("openai:gpt-4o-mini"))
        >>> agent = create_agent("openai:gpt-4o-mini", tools=[search], middleware=[checks])

    Args:
        evaluators: At least one Runnable from `Sample` to `Evaluation`. All are run on every
            answer, side by side.
        on_fail: What to do about an answer that fails, as `demur.Guard` takes it.
        budget: What may be spent. The attempts are all answers to one user message, even where the
            agent calls tools in between; the other limits hold from one step of the agent to the
            next.
        on_error: What becomes of an answer that an evaluator could not decide about. "closed": what
            `on_fail` has for the end; "open": it is let through; "raise": `EvaluatorFailed`.
        on_abstain: What becomes of an answer that states nothing that could be checked, as
            `demur.Guard` takes it.
        contexts: What the answers are judged against, in place of what tools returned: a key of the
            agent's state, or a function of the state.
        with_feedback: Makes of the messages that the model was sent and the `Feedback` the messages
            that it is sent in the next attempt. None: they are followed by one that tells the
            problems.
        model: A chat model, or a name for `resolve_model`, that answers from the sources in place
            of the agent's model when an answer failed.
        retriever: A Runnable from a query to documents, for `Retrieve`.

    Raises:
        ValueError: There is no evaluator, or one without a threshold; an argument is out of its
            range, or lacks another that it needs.
        TypeError: Something is no Runnable, no chat model, or no recovery.
    """

    def __init__(
        self,
        *evaluators: Evaluator,
        on_fail: OnFail = None,
        budget: Budget | None = None,
        on_error: OnError = "closed",
        on_abstain: OnAbstain = "pass",
        contexts: str | Callable[[Any], Any] | None = None,
        with_feedback: TellModel | None = None,
        model: str | BaseChatModel | None = None,
        retriever: Runnable[str, Any] | None = None,
    ) -> None:
        """See the class."""
        super().__init__()
        self._contexts = contexts
        options = options_of(
            on_fail=on_fail,
            on_error=on_error,
            on_abstain=on_abstain,
            with_feedback=None if with_feedback is None else _on_messages(with_feedback),
            tell=_on_messages(tell),
            model=model,
            retriever=retriever,
        )
        if contexts is not None:
            options["contexts"] = "documents"
        chain = answering(self._answer, self._aanswer)
        self._guards = Guards(chain, evaluators, budget or Budget(), options)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Run the model until there is an answer that may leave, or a call of tools.

        Raises:
            AnswerRejected: No answer was let through, and `on_fail` says `Block`.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
        """
        call, given = _start(request, handler)
        try:
            found = self._guards.after(call.rejected).invoke(given, held_back(), call=call)
        except NoAnswerYet as no_answer:
            return _without_answer(no_answer)
        return _let_through(found)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`, natively asynchronous."""
        call, given = _start(request, handler)
        try:
            found = await self._guards.after(call.rejected).ainvoke(given, held_back(), call=call)
        except NoAnswerYet as no_answer:
            return _without_answer(no_answer)
        return _let_through(found)

    def _answer(self, given: dict[str, Any], call: Call) -> dict[str, Any]:
        return self._judgeable(call, call.run(given["messages"]))

    async def _aanswer(self, given: dict[str, Any], call: Call) -> dict[str, Any]:
        return self._judgeable(call, await call.run(given["messages"]))

    def _judgeable(self, call: Call, response: ModelResponse[Any]) -> dict[str, Any]:
        """What the guard reads, out of a model's response."""
        last = last_written(response.result)
        if last is None:
            seen = [type(message).__name__ for message in response.result]
            raise DemurError(
                f"there is no answer in the model's response, which holds {seen}: expected an "
                "AIMessage. Look at the middleware that is listed after HallucinationMiddleware"
            )
        if response.structured_response is None and calls_tools(last):
            step = call.step(without_text(last))
            raise NoAnswerYet([step if one is last else one for one in response.result])
        call.given += 1
        judged = last
        if calls_tools(last):  # of the tool that takes the structured response
            text = to_json(response.structured_response, fallback=str).decode()
            judged = AIMessage(text, id=last.id, name=last.name)
        documents: Any = sources(call.state["messages"])
        if self._contexts is not None:
            documents = read_state(self._contexts, call.state, "contexts")
        return {"answer": judged, "documents": documents, "judged": judged, "model": response}


def _start(
    request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
) -> tuple[Call, dict[str, Any]]:
    """A guarded call of a model, and the input of the guard."""
    conversation = request.state["messages"]
    call = Call(
        run=lambda messages: handler(request.override(messages=messages)),
        state=request.state,
        rejected=rejected_in(conversation),
    )
    return call, {"question": question_in(conversation), "messages": request.messages}


def _on_messages(tell: TellModel) -> Callable[[dict[str, Any], Feedback], dict[str, Any]]:
    return lambda given, feedback: {**given, "messages": tell(given["messages"], feedback)}


def _without_answer(no_answer: NoAnswerYet) -> ModelResponse[Any]:
    return ModelResponse(result=only_last_speaks(no_answer.step))


def _let_through(found: dict[str, Any]) -> ModelResponse[Any]:
    """The model's response, with what the guard made of the answer."""
    response, answer = found["model"], found["answer"]
    if answer is found["judged"]:
        return replace(response, result=only_last_speaks(response.result))
    # With the answer goes all that was made of it: the structured response and its tool message.
    last = max(at for at, one in enumerate(response.result) if isinstance(one, AIMessage))
    return ModelResponse(result=only_last_speaks([*response.result[:last], answer]))
