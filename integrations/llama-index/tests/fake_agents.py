"""Make LlamaIndex's agents with models that reply as a test says, and run them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.workflow import Context

from fake_llm import ScriptedLLM

Called = tuple[str, dict[str, Any]]
Reply = str | tuple[Called, ...]
Make = Callable[..., Any]


def calling(*replies: Reply) -> MockFunctionCallingLLM:
    """Return a model that replies in order with texts and calls."""
    coming = list(replies)

    def reply(messages: Sequence[ChatMessage], **options: Any) -> ChatMessage:
        said = coming.pop(0)
        if isinstance(said, str):
            return ChatMessage(said, role=MessageRole.ASSISTANT)
        blocks = [
            ToolCallBlock(tool_call_id=f"{len(coming)}-{at}", tool_name=name, tool_kwargs=args)
            for at, (name, args) in enumerate(said)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks)

    return MockFunctionCallingLLM(response_generator=reply, is_chat_model=True)


def reacting(*replies: Reply) -> ScriptedLLM:
    """Return a model that writes its calls as ReAct does."""
    coming = list(replies)

    def script(stage: str, messages: Any) -> str:
        said = coming.pop(0)
        if isinstance(said, str):
            return f"Thought: I can answer.\nAnswer: {said}"
        ((name, args),) = said
        return f"Thought: I need a tool.\nAction: {name}\nAction Input: {json.dumps(args)}"

    return ScriptedLLM(script=script)


def function_agent(tools: list[Any], *replies: Reply) -> Any:
    return FunctionAgent(tools=tools, llm=calling(*replies), streaming=False)


def react_agent(tools: list[Any], *replies: Reply) -> Any:
    return ReActAgent(tools=tools, llm=reacting(*replies), streaming=False)


def workflow(tools: list[Any], *replies: Reply) -> Any:
    return AgentWorkflow(agents=[function_agent(tools, *replies)])


AGENTS: Any = {"FunctionAgent": function_agent, "ReActAgent": react_agent, "workflow": workflow}
agents = pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)


async def asked(agent: Any, *questions: str) -> tuple[list[Any], list[Any], Any]:
    """Ask an agent in one context; return its outputs, all its events, and its memory."""
    ctx: Any = Context(agent)
    memory = ChatMemoryBuffer.from_defaults()  # LlamaIndex keeps none from run to run by itself
    outputs, events = [], []
    for question in questions:
        handler = agent.run(question, ctx=ctx, memory=memory)
        async for event in handler.stream_events():
            events.append(event)
        outputs.append(await handler)
    return outputs, events, memory


def run(agent: Any, *questions: str) -> tuple[list[Any], list[Any]]:
    """Ask an agent in one context; return its outputs and all its events."""
    outputs, events, _ = asyncio.run(asked(agent, *questions))
    return outputs, events
