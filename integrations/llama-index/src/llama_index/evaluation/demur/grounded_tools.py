"""Provide tools for LlamaIndex's agents that do not run with arguments that nobody gave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from itertools import chain
from typing import Any

from llama_index.core.tools import BaseTool, FunctionTool, ToolOutput, adapt_to_async_tool
from llama_index.core.workflow import Context

from demur import DemurError
from demur.guard import AnswerRejected, CallCheck
from llama_index.evaluation.demur._calls import called, said
from llama_index.evaluation.demur._guarding import Telling

_CALLS = "demur:calls"
"""Where the context of an agent keeps the results of these tools."""
_CONTEXT = "demur_context"


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
        memory = await ctx.store.get("memory", default=None)
        heard = [] if memory is None else said(await memory.aget_all())
        kept = await ctx.store.get(_CALLS, default=[])
        before = [called(**one, id=str(at)) for at, one in enumerate(kept)]
        messages = [*heard, *chain.from_iterable(before)]
        schema = self.metadata.get_parameters_dict()
        if stopped := self._check.stopped(call, schema, messages, self._known):
            with suppress(AnswerRejected):
                await stopped.guard.ainvoke(None, Telling().config)
            return ToolOutput(name, stopped.text, raw_input=kwargs, is_error=True)
        inner = self._tool
        if isinstance(inner, FunctionTool) and inner.requires_context and inner.ctx_param_name:
            kwargs = {**kwargs, inner.ctx_param_name: ctx}
        output = await inner.acall(*args, **kwargs)
        done = {**call, "text": output.content, "failed": output.is_error}
        async with ctx.store.edit_state() as state:
            state[_CALLS] = [*state.get(_CALLS, []), done]
        return output


def _only_asynchronous(**kwargs: Any) -> None:
    raise DemurError("a grounded tool needs its agent's context, so only agents can run it")
