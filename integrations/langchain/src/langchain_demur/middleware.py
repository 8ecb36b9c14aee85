"""Provide middleware that checks an agent's answers before anyone sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from langchain.agents import middleware
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.structured_output import AutoStrategy, StructuredOutputError, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from pydantic_core import from_json, to_json

from demur import DemurError
from demur.evaluators import EvaluatorLike
from demur.guard import Budget, Cite, Feedback, OnError, OnFail
from demur.schema import OnAbstain
from demur.shapes import (
    CALLS,
    NoSuchForm,
    check_reader,
    find_answer,
    find_question,
    last_written,
    sources,
    tool_calls,
)
from langchain_demur._messages import (
    MARK,
    calls_tools,
    marked_as,
    only_last_speaks,
    only_text,
    tell,
    without_text,
)
from langchain_demur._run import (
    Call,
    Guards,
    NoAnswerYet,
    is_own,
    named_apart,
    outcome_of,
    policy_of,
    read_state,
    rejected_in,
)

_CONVERSATION = "conversation"
_TracePolicy: Any = getattr(middleware, "TracePolicy", None)  # since langchain 1.5


def _outcome(response: ModelResponse[Any] | None) -> dict[str, Any]:
    """Return what the guard says of a response, without the texts that it quotes."""
    result = response.result if response else ()  # an error has no response
    marks = [message.response_metadata.get(MARK, {}) for message in result]
    keys = ("outcome", "reason", "rejected")
    return {key: mark[key] for mark in marks for key in keys if key in mark}


class HallucinationMiddleware(AgentMiddleware[AgentState[Any], Any]):
    """Check every answer of an agent before it is streamed, stored or returned.

    An answer is a message of the model that calls no tools. It is judged against what tools
    returned since the user's last message. If they returned nothing since then, it is judged
    against what tools returned in the whole conversation. What the agent says that it did is judged
    by its calls of tools, which are all that was done.

    If an answer fails, the model answers again and is told the problems. If no answer passes, a
    refusal takes its place under the same message id. The agent's state has neither the rejected
    answers nor what the model was told about them.

    A message that calls tools goes through with its calls, but without the text beside them. A
    structured response is judged as its JSON; if it is not let through, `structured_response` is
    left out.

    List this middleware before other middleware. Middleware after it in the list runs again for
    each attempt, and sees answers that were not judged.

    Examples:
        >>> checks = HallucinationMiddleware(RefChecker("openai:gpt-4o-mini"))
        >>> agent = create_agent("openai:gpt-4o-mini", tools=[search], middleware=[checks])

    Args:
        evaluators: One or more evaluators, as `demur.Guard` takes them. All of them judge every
            answer, at the same time.
        on_fail: What to do about an answer that fails, as `demur.Guard` takes it. The `tell` of a
            `Regenerate` takes the messages that the model was sent and the `Feedback`, and returns
            the messages for the next attempt. Without a `tell`, a message that describes the
            problems is added.
        on_pass: What to do to an answer that passes. With `Cite()`, each supported sentence shows
            its sources: results of tools, with the tool's name and the id of the call. The message
            has the citations in `response_metadata["demur"]["citations"]`.
        budget: The limits. `attempts` counts all answers to one user message, even if the agent
            calls tools between them. The other limits hold for one call of the model with all its
            attempts.
        on_error: What to do with an answer that an evaluator could not decide about. "closed": the
            policy decides, by its key "undetermined", else by "end". "open": the answer is let
            through. "raise": `EvaluatorFailed` is raised.
        on_abstain: What to do with an answer that states nothing to check, as `demur.Guard` takes
            it.
        contexts: What the answers are judged against, in place of what tools returned: a key of the
            agent's state, or a function of the state.
        conversation: Whether the conversation supports the answer too. The user's statements then
            count as sources and are believed ("My name is Ann."). So do the results of tools in
            earlier turns.
        system: Whether the facts in the system message support the answer too, as in `demur.Guard`.
        model: A shorter form of `on_fail`: a chat model, or a name for `resolve_model`, that
            answers from the sources when the answer of the agent's model failed.

    Raises:
        ValueError: There is no evaluator, or an evaluator has no threshold; an argument is out of
            its range; or `on_fail` and `model` are both given.
        TypeError: A value is not an evaluator, a chat model or a recovery where one is expected; or
            `contexts` is neither a key nor a function.
    """

    trace_policy = _TracePolicy and _TracePolicy(
        process_inputs=lambda inputs: {}, process_outputs=_outcome
    )
    """The policy that keeps passages and answers out of the spans of this middleware's hook."""

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
        system: bool = False,
        model: str | BaseChatModel | None = None,
    ) -> None:
        """Make the middleware; the class describes the arguments."""
        super().__init__()
        check_reader("contexts", contexts, "the state")
        self._contexts = contexts
        options: dict[str, Any] = {
            "on_fail": policy_of(on_fail, model, lambda own: _on_messages(own or tell)),
            "on_pass": on_pass,
            "on_error": on_error,
            "on_abstain": on_abstain,
            "conversation": _CONVERSATION if conversation else False,
            "system": system,
        }
        if contexts is not None:
            options["contexts"] = "documents"
        self._guards = Guards(self._answer, self._aanswer, evaluators, budget, options)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Run the model until an answer may leave or the model calls tools.

        Raises:
            AnswerRejected: No answer was let through, and `on_fail` ends with `Block`.
            EvaluatorFailed: An evaluator could not decide, and `on_error` is "raise".
            DemurError: The response has no answer, or a structured response that cannot be read.
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
        """Do the same as `wrap_model_call`, natively asynchronous."""
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
        return self._judgeable(call, response, given[_CONVERSATION])

    async def _aanswer(self, given: dict[str, Any], call: Call) -> dict[str, Any]:
        try:
            response = await call.run(given["messages"])
        except StructuredOutputError as error:
            raise DemurError(_unreadable(error)) from None
        return self._judgeable(call, response, given[_CONVERSATION])

    def _judgeable(
        self, call: Call, response: ModelResponse[Any], conversation: Sequence[BaseMessage]
    ) -> dict[str, Any]:
        """Return what the guard reads of a model's response.

        Raises:
            NoAnswerYet: The model calls tools.
            DemurError: The response has no message of the model.
        """
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
        documents: Any = sources(conversation)
        if self._contexts is not None:
            documents = read_state(self._contexts, call.state, "contexts")
        given = {"documents": documents, CALLS: tool_calls(conversation, complete=True)}
        return call.judge(judged, given, _Judged(response, last, judged))


@dataclass(frozen=True)
class _Judged:
    """Hold an answer and the response that it came in."""

    response: ModelResponse[Any]
    last: AIMessage
    answer: AIMessage


def _answer_in(response: ModelResponse[Any], last: AIMessage) -> AIMessage | None:
    """Return the answer to be judged in a response whose last model message is `last`.

    Returns:
        The answer, or None if the message calls tools and there is no structured response.
    """
    if not calls_tools(last):
        return only_text(last)
    # A call that already has a tool message here is of the tool for structured responses.
    given = [call["args"] for call in last.tool_calls if call["id"] in _answered(response)]
    if response.structured_response is not None:
        said = response.structured_response
    elif given:  # the arguments could not be read, or there were several calls
        said = given[0] if len(given) == 1 else given
    else:
        return None
    return AIMessage(_as_json(said), id=last.id, name=last.name)


def _answered(response: ModelResponse[Any]) -> set[str]:
    return {message.tool_call_id for message in response.result if isinstance(message, ToolMessage)}


def _as_json(value: Any) -> str:
    return to_json(value, fallback=str).decode()


def _unreadable(error: StructuredOutputError) -> str:
    # The error's own message is left out, because it quotes the model.
    return (
        f"the model's structured response cannot be read ({type(error).__name__}), and nobody has "
        "checked what it says: list ModelRetryMiddleware after HallucinationMiddleware, or give "
        "the agent ToolStrategy(schema), which has the model correct itself"
    )


def _start(
    request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
) -> tuple[Call, dict[str, Any]]:
    """Return a guarded call of the model, and the guard's input."""
    # Not `request.messages`, which other middleware may have changed.
    conversation = _without_forms(request.state["messages"], request.response_format)
    call = Call(
        run=lambda messages: handler(request.override(messages=messages)),
        state=request.state,
        rejected=rejected_in(conversation),
    )
    return call, {
        "question": find_question(conversation),
        "messages": request.messages,
        _CONVERSATION: conversation,
        "system": SystemMessage(request.system_prompt or ""),
    }


def _without_forms(messages: Sequence[AnyMessage], form: Any) -> list[AnyMessage]:
    """Return the messages without calls for structured responses: what they say is no source."""
    if isinstance(form, AutoStrategy):
        form = ToolStrategy(form.schema)
    names = {spec.name for spec in form.schema_specs} if isinstance(form, ToolStrategy) else set()
    kept = [one for one in messages if not (isinstance(one, ToolMessage) and one.name in names)]
    for at, one in enumerate(kept):
        if isinstance(one, AIMessage) and names:
            calls = [call for call in one.tool_calls if call["name"] not in names]
            kept[at] = one.model_copy(update={"tool_calls": calls})
    return kept


def _on_messages(
    tell: Callable[[list[AnyMessage], Feedback], list[AnyMessage]],
) -> Callable[[dict[str, Any], Feedback], dict[str, Any]]:
    return lambda given, feedback: {**given, "messages": tell(given["messages"], feedback)}


def _without_answer(no_answer: NoAnswerYet) -> ModelResponse[Any]:
    return ModelResponse(result=only_last_speaks(no_answer.step))


def _let_through(call: Call, found: dict[str, Any]) -> ModelResponse[Any]:
    """Return the model's response with the answer that the guard returned."""
    judged: _Judged = call.of(found)
    response, answer = judged.response, found["answer"]
    if not is_own(answer, judged.answer):
        # What was made of the rejected answer goes too: structured response and tool messages.
        before = takewhile(lambda message: message is not judged.last, response.result)
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
    """Return the structured response whose JSON is a repaired answer, validated by its class.

    Returns:
        The object. None if there was no structured response, if the answer is a refusal, or if the
        class refuses the values.
    """
    if structured is None or outcome_of(answer) not in ("recovered", "trimmed"):
        return None
    try:
        return find_answer(structured).repaired(str(answer.text))
    except (NoSuchForm, DemurError):
        return None


def _call_judged(response: ModelResponse[Any], last: AIMessage) -> AIMessage:
    """Return the message with the call for a structured response, without what was not judged.

    The arguments of the call are the values that were judged.
    """
    calls = last.tool_calls
    if response.structured_response is not None:
        answered = _answered(response)
        said = from_json(_as_json(response.structured_response))
        args = said if isinstance(said, dict) else {}
        calls = [{**call, "args": args} if call["id"] in answered else call for call in calls]
    # `additional_kwargs` and content blocks are left out: their arguments were not judged.
    return AIMessage(
        "",
        id=last.id,
        name=last.name,
        tool_calls=calls,
        usage_metadata=last.usage_metadata,
        response_metadata={k: v for k, v in last.response_metadata.items() if k != "logprobs"},
    )
