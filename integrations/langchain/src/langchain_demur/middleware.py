"""Middleware that checks an agent's answers before anyone sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.structured_output import StructuredOutputError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from pydantic_core import from_json, to_json

from demur import DemurError
from demur.evaluators import EvaluatorLike
from demur.guard import Budget, Cite, Feedback, OnError, OnFail
from demur.schema import OnAbstain
from demur.shapes import NoSuchForm, check_reader, find_answer, last_written, sources
from langchain_demur._messages import (
    calls_tools,
    marked_as,
    only_last_speaks,
    only_text,
    question_in,
    tell,
    without_text,
)
from langchain_demur._run import (
    Call,
    Guards,
    NoAnswerYet,
    answering,
    is_own,
    named_apart,
    outcome_of,
    policy_of,
    read_state,
    rejected_in,
)

_CONVERSATION = "conversation"


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

    Examples:
        >>> checks = HallucinationMiddleware(RefChecker("openai:gpt-4o-mini"))
        >>> agent = create_agent("openai:gpt-4o-mini", tools=[search], middleware=[checks])

    Args:
        evaluators: At least one, as `demur.Guard` takes them. All are run on every answer, side by
            side.
        on_fail: What to do about an answer that fails, as `demur.Guard` takes it. The `tell` of a
            `Regenerate` makes of the messages that the model was sent and the `Feedback` the
            messages that it is sent in the next attempt; without one, they are followed by one that
            tells the problems.
        on_pass: `Cite()`: each supported sentence of an answer shows what it rests on: results of
            tools, with the tool's name and the call's id. The message has its citations in
            `response_metadata["demur"]["citations"]`.
        budget: What may be spent. The attempts are all answers to one user message, even where the
            agent calls tools in between; the other limits hold for one call of the model with all
            its attempts.
        on_error: What becomes of an answer that an evaluator could not decide about. "closed": what
            `on_fail` has for the end; "open": it is let through; "raise": `EvaluatorFailed`.
        on_abstain: What becomes of an answer that states nothing that could be checked, as
            `demur.Guard` takes it.
        contexts: What the answers are judged against, in place of what tools returned: a key of the
            agent's state, or a function of the state.
        conversation: Whether the conversation supports an answer too: what the user stated in it
            ("My name is Ann."), and what tools returned in earlier turns. The user is a source
            then, and is believed.
        model: In place of `on_fail`: a chat model, or a name for `resolve_model`, that answers from
            the sources in place of the agent's model when an answer failed.

    Raises:
        ValueError: There is no evaluator, or one without a threshold; an argument is out of its
            range; `on_fail` and `model` are both given.
        TypeError: Something is no evaluator, no chat model, or no recovery; or what says where
            something is is neither a key nor a function.
    """

    def __init__(
        self,
        *evaluators: EvaluatorLike | Sequence[EvaluatorLike],
        on_fail: OnFail = None,
        on_pass: Cite | None = None,
        budget: Budget | None = None,
        on_error: OnError = "closed",
        on_abstain: OnAbstain = "pass",
        contexts: str | Callable[[Any], Any] | None = None,
        conversation: bool = False,
        model: str | BaseChatModel | None = None,
    ) -> None:
        """See the class."""
        super().__init__()
        check_reader("contexts", contexts, "the state")
        self._contexts = contexts
        options: dict[str, Any] = {
            "on_fail": policy_of(on_fail, model, lambda own: _on_messages(own or tell)),
            "on_pass": on_pass,
            "on_error": on_error,
            "on_abstain": on_abstain,
            "conversation": _CONVERSATION if conversation else False,
        }
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
            found = self._guards.after(call.rejected).invoke(given, named_apart(), call=call)
        except NoAnswerYet as no_answer:
            return _without_answer(no_answer)
        return _let_through(call, found)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`, natively asynchronous."""
        call, given = _start(request, handler)
        try:
            found = await self._guards.after(call.rejected).ainvoke(given, named_apart(), call=call)
        except NoAnswerYet as no_answer:
            return _without_answer(no_answer)
        return _let_through(call, found)

    def _answer(self, given: dict[str, Any], call: Call) -> dict[str, Any]:
        try:
            response = call.run(given["messages"])
        except StructuredOutputError as error:
            raise DemurError(_unreadable(error)) from None
        return self._judgeable(call, response)

    async def _aanswer(self, given: dict[str, Any], call: Call) -> dict[str, Any]:
        try:
            response = await call.run(given["messages"])
        except StructuredOutputError as error:
            raise DemurError(_unreadable(error)) from None
        return self._judgeable(call, response)

    def _judgeable(self, call: Call, response: ModelResponse[Any]) -> dict[str, Any]:
        """What the guard reads, out of a model's response."""
        last = last_written(response.result)
        if last is None:
            seen = [type(message).__name__ for message in response.result]
            raise DemurError(
                f"there is no answer in the model's response, which holds {seen}: expected an "
                "AIMessage. Look at the middleware that is listed after HallucinationMiddleware"
            )
        judged = _answer_in(response, last)
        if judged is None:
            step = call.step(without_text(last))
            raise NoAnswerYet([step if one is last else one for one in response.result])
        documents: Any = sources(call.state["messages"])
        if self._contexts is not None:
            documents = read_state(self._contexts, call.state, "contexts")
        return call.judge(judged, {"documents": documents}, _Judged(response, last, judged))


@dataclass(frozen=True)
class _Judged:
    """An answer, and the response that it stands in."""

    response: ModelResponse[Any]
    last: AIMessage
    answer: AIMessage


def _answer_in(response: ModelResponse[Any], last: AIMessage) -> AIMessage | None:
    """What is to be judged of a response whose last message of the model's is `last`."""
    if not calls_tools(last):
        return only_text(last)
    # Calls that the model's node has answered itself are of the tool for structured responses.
    given = [call["args"] for call in last.tool_calls if call["id"] in _answered(response)]
    if response.structured_response is not None:
        said = response.structured_response
    elif given:  # they could not be read, or were several
        said = given[0] if len(given) == 1 else given
    else:
        return None
    return AIMessage(_as_json(said), id=last.id, name=last.name)


def _answered(response: ModelResponse[Any]) -> set[str]:
    return {message.tool_call_id for message in response.result if isinstance(message, ToolMessage)}


def _as_json(value: Any) -> str:
    return to_json(value, fallback=str).decode()


def _unreadable(error: StructuredOutputError) -> str:
    # Not its message, which quotes what the model said.
    return (
        f"the model's structured response cannot be read ({type(error).__name__}), and nobody has "
        "checked what it says: list ModelRetryMiddleware after HallucinationMiddleware, or give "
        "the agent ToolStrategy(schema), which has the model correct itself"
    )


def _start(
    request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
) -> tuple[Call, dict[str, Any]]:
    """A guarded call of a model, and the input of the guard."""
    # Not the messages that the model is sent: other middleware may have changed them.
    conversation = request.state["messages"]
    call = Call(
        run=lambda messages: handler(request.override(messages=messages)),
        state=request.state,
        rejected=rejected_in(conversation),
    )
    return call, {
        "question": question_in(conversation),
        "messages": request.messages,
        _CONVERSATION: conversation,
    }


def _on_messages(
    tell: Callable[[list[AnyMessage], Feedback], list[AnyMessage]],
) -> Callable[[dict[str, Any], Feedback], dict[str, Any]]:
    return lambda given, feedback: {**given, "messages": tell(given["messages"], feedback)}


def _without_answer(no_answer: NoAnswerYet) -> ModelResponse[Any]:
    return ModelResponse(result=only_last_speaks(no_answer.step))


def _let_through(call: Call, found: dict[str, Any]) -> ModelResponse[Any]:
    """The model's response, with what the guard made of the answer."""
    judged: _Judged = call.of(found)
    response, answer = judged.response, found["answer"]
    if not is_own(answer, judged.answer):
        # With the answer goes all that was made of it: structured response and tool messages.
        before = response.result[: _index(response.result, judged.last)]
        return ModelResponse(
            result=only_last_speaks([*before, call.told(answer)]),
            structured_response=_repaired(response.structured_response, answer),
        )
    leaving = answer
    if calls_tools(judged.last):
        leaving = marked_as(answer, _call_judged(response, judged.last))
        if response.structured_response is None:  # the turn goes on
            leaving = call.step(leaving, found)
    result = [leaving if message is judged.last else message for message in response.result]
    return replace(response, result=only_last_speaks(result))


def _repaired(structured: Any, answer: AIMessage) -> Any:
    """The structured response that a repaired answer is the JSON of, as its class validates it.

    Returns:
        None where there was none, where the answer is a refusal, and where the class takes no such
        values.
    """
    if structured is None or outcome_of(answer) not in ("recovered", "trimmed"):
        return None
    try:
        return find_answer(structured).repaired(str(answer.text))
    except (NoSuchForm, DemurError):
        return None


def _call_judged(response: ModelResponse[Any], last: AIMessage) -> AIMessage:
    """A call of the tool for structured responses, whose arguments are what was judged."""
    calls = last.tool_calls
    if response.structured_response is not None:
        answered = _answered(response)
        said = from_json(_as_json(response.structured_response))
        args = said if isinstance(said, dict) else {}
        calls = [{**call, "args": args} if call["id"] in answered else call for call in calls]
    # Providers' own forms of the calls hold the arguments as the model wrote them.
    return AIMessage(
        "",
        id=last.id,
        name=last.name,
        tool_calls=calls,
        usage_metadata=last.usage_metadata,
        response_metadata={k: v for k, v in last.response_metadata.items() if k != "logprobs"},
    )


def _index(messages: Sequence[Any], message: AIMessage) -> int:
    return next(at for at, one in enumerate(messages) if one is message)
