"""Make agents over a real streaming HTTP endpoint, with a retriever tool over a real Chroma."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from demur import Evaluation, RefChecker, Sample
from demur.observe import Record
from support.handlers import handler_for, nothing_left, run
from support.openai_server import Answer, OpenAIServer
from support.rag import QUESTION, application

REJECTED = "ЖЩЮ 97"
"""An answer that no source supports, with letters that nothing else in these tests has."""
LETTERS = frozenset("ЖЩЮ")
ASKED: Any = {"messages": [HumanMessage(QUESTION, id="asked")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
TASKS_HAVE_CONTEXT = sys.version_info >= (3, 11)
"""Before Python 3.11, langgraph passes its config to no task: no interrupts, no writer."""


@dataclass(frozen=True)
class Calls:
    """Describe a reply that calls tools."""

    calls: tuple[tuple[str, dict[str, Any] | str], ...]
    """The names of the tools, each with its arguments or the text in their place."""
    text: str | None = None
    """The text beside the calls."""


def search(query: str = "How tall is the Amber Tower?", text: str | None = None) -> Calls:
    """Return a reply that searches."""
    return Calls((("search", {"query": query}),), text)


Reply = str | Calls
Speak = Callable[[dict[str, Any]], Reply]
"""A function from a request to the reply."""


def serving(*replies: Reply) -> Callable[[dict[str, Any], int], Answer | str]:
    """Return a script whose agent model gives these replies in order, then repeats the last."""
    coming = list(replies)
    return speaking(lambda request: coming.pop(0) if len(coming) > 1 else coming[0])


def speaking(
    speak: Speak, judge: Callable[[dict[str, Any], int], Answer | str] | None = None
) -> Callable[[dict[str, Any], int], Answer | str]:
    """Return a script: the agent's model replies by `speak`, and the judge knows the numbers."""
    judge = judge or application("")

    def script(request: dict[str, Any], number: int) -> Answer | str:
        text = "".join(str(message["content"]) for message in request["messages"])
        if re.search(r"<(answer|claims|claim|problems)-\w+>", text):
            return judge(request, number)
        return _reply(speak(request), request, number)

    return script


def _reply(reply: Reply, request: dict[str, Any], number: int) -> Answer:
    if isinstance(reply, str):
        reply = Calls((), reply)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {
                "index": at,
                "id": f"call-{number}-{at}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for at, (name, given) in enumerate(reply.calls)
        ]
    reason = "tool_calls" if reply.calls else "stop"
    about = {"id": f"chatcmpl-{number}", "created": 1, "model": request["model"]}
    if not request.get("stream"):
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        body = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
        return Answer(body=json.dumps(body).encode())
    # The reply is sent letter by letter, so that a leak shows as early as possible.
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": letter} for letter in reply.text or ""]
    if reply.calls:
        deltas.append({"tool_calls": message["tool_calls"]})
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks = [
        json.dumps({**about, "object": "chat.completion.chunk", "choices": [choice]})
        for choice in choices
    ]
    return Answer(body="".join(f"data: {one}\n\n" for one in [*chunks, "[DONE]"]).encode())


def checker(server: OpenAIServer) -> RefChecker:
    """Return a judge that asks the server."""
    return RefChecker(server.model(), checker="joint")


def search_tool(retriever: BaseRetriever) -> BaseTool:
    """Return the retriever as a tool that also returns its documents."""
    return create_retriever_tool(
        retriever,
        "search",
        "Search the archive.",
        response_format="content_and_artifact",
    )


class Echo(AgentMiddleware[Any, Any]):
    """Write the model's text to the custom stream, as a client's own middleware may do."""

    def after_model(self, state: Any, runtime: Any) -> None:
        runtime.stream_writer({"said": state["messages"][-1].text})


def make_agent(
    server: OpenAIServer,
    tools: Sequence[BaseTool],
    *middleware: AgentMiddleware[Any, Any],
    **options: Any,
) -> Any:
    """Make an agent with the server's model."""
    return create_agent(server.model(), [*tools], middleware=[*middleware], **options)


@tool("search")
def small_search(query: str) -> str:
    """Search the archive."""
    return "The Amber Tower in Lund is 84 metres tall."


# --- Judges, graphs and records -------------------------------------------------------------------


def judged_by(seen: list[Sample], *verdicts: bool | None) -> Callable[[Sample], Evaluation]:
    """Return an evaluator that records samples and gives these verdicts, then repeats the last."""
    coming = list(verdicts)

    def judge(sample: Sample) -> Evaluation:
        seen.append(sample)
        passed = coming.pop(0) if len(coming) > 1 else coming[0]
        error = "cannot tell" if passed is None else None
        return Evaluation(name="judge", passed=passed, error=error)

    return judge


class Sources(MessagesState):
    context: list[Document]


def graph_of(
    node: Any, checkpointer: Any = None, *, schema: Any = Sources, name: str = "generate"
) -> Any:
    """Return a graph of this node alone."""
    graph = StateGraph(schema)
    graph.add_node(name, node)
    graph.set_entry_point(name)
    return graph.compile(checkpointer=checkpointer)


def one_node(node: Any, **options: Any) -> Any:
    """Return such a graph that keeps its checkpoints."""
    return graph_of(node, InMemorySaver(), **options)


def record_of(mode: str, agent: Any, given: Any, *evaluators: Any) -> Record:
    """Return what a handler records of one run of the agent."""
    handler, records = handler_for(*evaluators)
    run(mode, agent, given, handler)
    assert nothing_left(handler)
    assert handler.close(30)
    return records.one
