"""Provide tools for LlamaIndex's agents that do not run with arguments that nobody gave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.llms import MessageRole
from llama_index.core.tools import BaseTool, FunctionTool, ToolOutput, adapt_to_async_tool
from llama_index.core.workflow import Context

from demur import DemurError
from demur.guard import AnswerRejected, CallCheck
from llama_index.evaluation.demur._guarding import Telling

_CALLS = "demur:calls"
"""Where the context of an agent keeps the results of these tools."""
_CONTEXT = "demur_context"
_KINDS = {MessageRole.USER: HumanMessage, MessageRole.SYSTEM: SystemMessage}


def grounded_tools(
    tools: Sequence[BaseTool | Callable[..., Any]],
    *,
    known: Sequence[str] = (),
    untrusted: Collection[str] = (),
    checked: Mapping[str, bool] | None = None,
    today: Callable[[], date] = date.today,
) -> list[BaseTool]:
    """Return the tools for an agent, each of which runs only with values that somebody gave.

    The agent is a `FunctionAgent`, a `ReActAgent` or an `AgentWorkflow`. Before a tool runs, exact
    values among its arguments are looked up in what the user and the system said, in the results of
    these tools in this context, and in `known` (see `demur.evaluators.missing_values`). If a value
    stands nowhere, the tool does not run, and its output, an error, tells the model. No model is
    asked. The agent's limit of iterations bounds how often.

    Each stopped call is reported as guarded engines report: with an `EvaluationEvent` and an
    `OutcomeEvent` whose outcome is "blocked", which a `ScoreEventHandler` records.

    Examples:
        >>> agent = FunctionAgent(tools=grounded_tools([get_order, refund]), llm=llm)

    Args:
        tools: All tools of the agent, since only the results of these are known.
        known: Texts with values that hold too, such as the agent's `system_prompt`.
        untrusted: The names of tools whose results do not count, since others write into them.
        checked: Settings by "TOOL.ARGUMENT" or "TOOL": True has its values sought, False not.
        today: A function that returns the date of the user.
    """
    check = CallCheck(untrusted, dict(checked or {}), today)
    made = (one if isinstance(one, BaseTool) else FunctionTool.from_defaults(one) for one in tools)
    return [_Grounded(one, known, check) for one in made]


class _Grounded(FunctionTool):
    """Run a tool of an agent if somebody gave the values of its arguments."""

    def __init__(self, tool: BaseTool, known: Sequence[str], check: CallCheck) -> None:
        self._tool = adapt_to_async_tool(tool)
        super().__init__(fn=_only_asynchronous, metadata=tool.metadata)
        # Agents give their context to tools that say so.
        self.requires_context, self.ctx_param_name = True, _CONTEXT
        self._known, self._check = known, check

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Run the tool, or return an error that says what nobody gave."""
        ctx: Context[Any] = kwargs.pop(_CONTEXT)
        name = self.metadata.get_name()
        call = {"name": name, "args": kwargs}
        messages = [*await _said(ctx), *_returned(await ctx.store.get(_CALLS, default=[]))]
        schema = self.metadata.get_parameters_dict()
        if stopped := self._check.stopped(call, schema, messages, self._known):
            with suppress(AnswerRejected):
                await stopped.guard.ainvoke(None, Telling().config)
            return ToolOutput(name, stopped.text, raw_input=kwargs, is_error=True)
        inner = self._tool
        if isinstance(inner, FunctionTool) and inner.requires_context and inner.ctx_param_name:
            kwargs = {**kwargs, inner.ctx_param_name: ctx}
        output = await inner.acall(*args, **kwargs)
        kept = {**call, "text": output.content, "failed": output.is_error}
        async with ctx.store.edit_state() as state:
            state[_CALLS] = [*state.get(_CALLS, []), kept]
        return output


def _only_asynchronous(**kwargs: Any) -> None:
    raise DemurError("a grounded tool needs its agent's context, so only agents can run it")


async def _said(ctx: Context[Any]) -> list[BaseMessage]:
    """Return what the user and the system said to an agent."""
    memory = await ctx.store.get("memory", default=None)
    said = [] if memory is None else await memory.aget_all()
    return [_KINDS[one.role](one.content or "") for one in said if one.role in _KINDS]


def _returned(calls: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """Return calls with their results as messages."""
    found: list[BaseMessage] = []
    for at, call in enumerate(calls):
        status = "error" if call["failed"] else "success"
        made = {"name": call["name"], "args": call["args"], "id": str(at)}
        found.append(AIMessage("", tool_calls=[made]))
        found.append(
            ToolMessage(call["text"], tool_call_id=str(at), name=call["name"], status=status)
        )
    return found
