"""Read what LlamaIndex's agents were told, which tools they called, and what these returned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.agent.workflow import AgentOutput, ToolCallResult
from llama_index.core.llms import ChatMessage, MessageRole

from demur.shapes import sources, tool_calls
from llama_index.evaluation.demur._nodes import as_documents

_KINDS = {MessageRole.USER: HumanMessage, MessageRole.SYSTEM: SystemMessage}


def called(
    name: str, args: Mapping[str, Any], text: str, *, failed: bool, id: str, nodes: Any = None
) -> list[BaseMessage]:
    """Return a call of a tool and its result as messages; the nodes are what the result is from."""
    made = {"name": name, "args": dict(args), "id": id}
    status = "error" if failed else "success"
    artifact = [*as_documents(nodes)] if nodes else None
    result = ToolMessage(text, tool_call_id=id, name=name, status=status, artifact=artifact)
    return [AIMessage("", tool_calls=[made]), result]


def said(messages: Iterable[ChatMessage]) -> list[BaseMessage]:
    """Return what the user and the system said to an agent."""
    return [_KINDS[one.role](one.content or "") for one in messages if one.role in _KINDS]


def conversation(messages: Iterable[ChatMessage]) -> list[BaseMessage]:
    """Return the messages of an agent's memory, with calls and results where they are kept."""
    read: list[BaseMessage] = []
    for one in messages:
        if one.role in _KINDS:
            read += said([one])
        elif one.role is MessageRole.TOOL:
            id_ = str(one.additional_kwargs.get("tool_call_id"))
            read.append(ToolMessage(one.content or "", tool_call_id=id_))
        else:
            blocks = [block for block in one.blocks if block.block_type == "tool_call"]
            calls: Any = [
                {"name": block.tool_name, "args": block.tool_kwargs, "id": block.tool_call_id}
                for block in blocks
                if isinstance(block.tool_kwargs, dict)
            ]
            read.append(AIMessage(one.content or "", tool_calls=calls))
    return read


def of_run(results: Iterable[Any]) -> list[BaseMessage]:
    """Return an agent's calls in a run as messages; what is no `ToolCallResult` is left out."""
    read: list[BaseMessage] = []
    for one in results:
        if isinstance(one, ToolCallResult):
            output = one.tool_output
            nodes = getattr(output.raw_output, "source_nodes", None)
            about = (one.tool_name, one.tool_kwargs, output.content)
            read += called(*about, failed=output.is_error, id=one.tool_id, nodes=nodes)
    return read


def contexts_of(output: AgentOutput) -> tuple[Document, ...]:
    """Return what an agent's answer is judged by: what its tools returned, and its calls.

    These are the calls of the run that gave the answer. An output with calls whose results it does
    not have, such as that of a tool with `return_direct`, is judged by nothing.
    """
    messages = of_run(output.tool_calls)
    if len(messages) < 2 * len(output.tool_calls):
        return ()
    return (*sources(messages), *tool_calls(messages, complete=True))
