"""Provide middleware that stops an agent's calls whose arguments nobody gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from demur.guard import AnswerRejected, CallCheck, StoppedCall
from demur.shapes import find_messages, this_turn
from langchain_demur._messages import MARK, marked
from langchain_demur._run import MESSAGES, named_apart, view_of

if TYPE_CHECKING:  # its place has changed since langchain 1.0
    from langchain.agents.middleware.types import ToolCallRequest

OnCall = Literal["abstain", "interrupt", "block"]
_RUN = "demur:call"
_STOPPED = {"outcome": "stopped"}
_REASON = "the calls had values that nobody gave"
_REFUSAL = "I am missing details that this needs, so I stop here. Please tell me what is missing."

Result = ToolMessage | Command[Any]


class GroundedCalls(AgentMiddleware[AgentState[Any], Any]):
    """Stop a call of a tool before it runs if an argument has a value that nobody gave.

    Identifiers, addresses, paths, phone numbers, amounts, versions, dates and names among the
    arguments are looked up in the user's messages, in earlier results of tools, and in `known`
    (see `demur.evaluators.missing_values`). No model is asked. If a value stands nowhere, the tool
    does not run, and the model is told which value, what is most like it, and to look it up or to
    ask the user.

    Each stopped call is a guarded call of its own for callbacks: a run named "demur:call" with the
    events of a guard, and a trace with the outcome "blocked". A `ScoreCallbackHandler` records it.

    A value counts as given wherever it stands. If others can write into a tool's results, such as
    mails and web pages, list the tool under `untrusted`.

    Examples:
        >>> agent = create_agent(model, tools=[get_order, refund], middleware=[GroundedCalls()])

    Args:
        known: Texts with values that hold too, such as the user's account, or a function that
            returns them for a `ToolCallRequest`, whose `runtime.context` may have them. The
            agent's `system_prompt` is not among its messages, so give here what it tells.
        untrusted: The names of tools whose results do not count.
        checked: Settings by "TOOL.ARGUMENT" or "TOOL": True has its values sought, False not.
        tries: How many steps of one turn may have stopped calls, at least 1. After the last one,
            `on_fail` says what happens.
        on_fail: "abstain": a refusal ends the run. "interrupt": a person is asked about the last
            stopped call, with langgraph's interrupt and in the form of LangChain's
            `HumanInTheLoopMiddleware`: approve, edit or reject. "block": `AnswerRejected` is
            raised.
        refusal: The refusal.
        today: A function that returns the date of the user.

    Raises:
        ValueError: `tries` or `on_fail` is out of its range.
    """

    def __init__(
        self,
        *,
        known: Sequence[str] | Callable[[ToolCallRequest], Sequence[str]] = (),
        untrusted: Collection[str] = (),
        checked: Mapping[str, bool] | None = None,
        tries: int = 3,
        on_fail: OnCall = "abstain",
        refusal: str = _REFUSAL,
        today: Callable[[], date] = date.today,
    ) -> None:
        """Make the middleware; the class describes the arguments."""
        super().__init__()
        if tries < 1:
            raise ValueError(f"tries must be at least 1, got {tries}")
        if on_fail not in ("abstain", "interrupt", "block"):
            raise ValueError(
                f"on_fail: expected 'abstain', 'interrupt' or 'block', got {on_fail!r}"
            )
        self._check = CallCheck(untrusted, dict(checked or {}), today)
        self._known, self._refusal = known, refusal
        self._tries, self._on_fail = tries, on_fail
        self._schemas: dict[str, tuple[Any, Mapping[str, Any]]] = {}

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the run with the refusal if too many steps had stopped calls."""
        messages = state["messages"]
        stopped = bool(messages) and _is_stopped(messages[-1])
        if self._on_fail != "abstain" or not stopped or _stops(messages) < self._tries:
            return None
        mark = {"outcome": "abstained", "reason": _REASON}
        return {"messages": [marked(AIMessage(self._refusal), mark)], "jump_to": "end"}

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        """Run the tool, or return the message that says what nobody gave.

        Raises:
            AnswerRejected: The last try is over, and `on_fail` is "block".
        """
        call = self._stopped(request)
        if call is None:
            return handler(request)
        if allowed := self._allowed(call, request):
            return handler(allowed)
        with suppress(*self._kept_quiet(request)):
            call.guard.invoke(None, named_apart(request.runtime.config, _RUN))
        return _message(call, request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """Do the same as `wrap_tool_call`, natively asynchronous."""
        call = self._stopped(request)
        if call is None:
            return await handler(request)
        if allowed := self._allowed(call, request):
            return await handler(allowed)
        with suppress(*self._kept_quiet(request)):
            await call.guard.ainvoke(None, named_apart(request.runtime.config, _RUN))
        return _message(call, request)

    def _stopped(self, request: ToolCallRequest) -> StoppedCall | None:
        known = self._known(request) if callable(self._known) else self._known
        call, messages = request.tool_call, _messages(request)
        return self._check.stopped(call, self._schema(request), messages, known)

    def _is_last(self, request: ToolCallRequest) -> bool:
        """Return whether the last try of the turn is over with this call."""
        return _stops(_messages(request)) + 1 >= self._tries

    def _kept_quiet(self, request: ToolCallRequest) -> tuple[type[Exception], ...]:
        return () if self._on_fail == "block" and self._is_last(request) else (AnswerRejected,)

    def _schema(self, request: ToolCallRequest) -> Mapping[str, Any]:
        """Return the schema of the tool's arguments as the model has it, made once."""
        tool = request.tool
        if tool is None:
            return {}
        made = self._schemas.get(tool.name)
        if made is None or made[0] is not tool:
            parameters = convert_to_openai_tool(tool)["function"].get("parameters", {})
            self._schemas[tool.name] = made = (tool, parameters)
        return made[1]

    def _allowed(self, call: StoppedCall, request: ToolCallRequest) -> ToolCallRequest | None:
        """Return the call that a person approved or edited; None if none did."""
        if self._on_fail != "interrupt" or not self._is_last(request):
            return None
        named = {"name": request.tool_call["name"], "args": request.tool_call["args"]}
        allowed = {"action_name": named["name"], "allowed_decisions": ["approve", "edit", "reject"]}
        asked = {**named, "description": call.text}
        answer = interrupt({"action_requests": [asked], "review_configs": [allowed]})
        (decision,) = answer["decisions"]
        if decision["type"] == "edit":
            edited = request.tool_call.copy()
            edited["args"] = decision["edited_action"]["args"]
            return request.override(tool_call=edited)
        return request if decision["type"] == "approve" else None


def _messages(request: ToolCallRequest) -> Sequence[BaseMessage]:
    state = request.state  # a list in some graphs
    return find_messages(state) if isinstance(state, list) else view_of(state).get(MESSAGES, [])


def _message(call: StoppedCall, request: ToolCallRequest) -> ToolMessage:
    return ToolMessage(
        call.text,
        tool_call_id=request.tool_call["id"],
        name=request.tool_call["name"],
        status="error",
        response_metadata={MARK: _STOPPED},
    )


def _is_stopped(message: BaseMessage) -> TypeGuard[ToolMessage]:
    return isinstance(message, ToolMessage) and message.response_metadata.get(MARK) == _STOPPED


def _stops(messages: Sequence[BaseMessage]) -> int:
    """Return how many steps of this turn have had stopped calls, which may be made in parallel."""
    turn = this_turn(messages)
    stopped = {one.tool_call_id for one in turn if _is_stopped(one)}
    steps = (one.tool_calls for one in turn if isinstance(one, AIMessage))
    return sum(not stopped.isdisjoint(call["id"] for call in calls) for calls in steps)
