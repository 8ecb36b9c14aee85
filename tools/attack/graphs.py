"""Attack guards in LangGraph: every stream mode, and what states and checkpoints keep."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from demur import Block, DemurError, Guard
from demur.guard import REFUSAL, UNCHECKED
from langchain_demur import HallucinationMiddleware, guarded_node

from .listening import where
from .play import Script, Speaker, judges
from .truth import DOCUMENT, QUESTION, RIGHT, Hung, Tally, marks, tried, wrong

MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
_THREAD: Any = {"configurable": {"thread_id": "1"}}
_AGAIN = "And how many steps has it?"


@tool("search")
def _search(query: str) -> str:
    """Search the archive."""
    return DOCUMENT


class _Height(BaseModel):
    """A structured response."""

    said: str
    metres: int


class _Asked(TypedDict, total=False):
    input: str
    answer: AnyMessage
    draft: Any


# --- Graphs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Making:
    """Hold what a graph is made of."""

    model: Speaker
    options: dict[str, Any]
    """The guard's options."""
    judge: str
    saver: Any
    guarded: bool

    @property
    def judges(self) -> list[Any]:
        """Return new judges."""
        return judges(self.judge)

    def guard(self, chain: Any, **options: Any) -> Any:
        """Return the chain, guarded unless this is the control."""
        return Guard(chain, *self.judges, **self.options, **options) if self.guarded else chain

    def node(self, node: Any, **options: Any) -> Any:
        """Return the node, guarded unless this is the control."""
        if not self.guarded:
            return node
        return guarded_node(node, *self.judges, **self.options, **options)

    def graph(self, node: Any, name: str, state: Any = MessagesState) -> Any:
        """Return a graph with only this node."""
        builder = StateGraph(state)
        builder.add_node(name, node)
        builder.set_entry_point(name)
        return builder.compile(checkpointer=self.saver)

    def agent(self, saver: Any = None, middleware: bool = True, **options: Any) -> Any:
        """Return an agent with a search tool."""
        checks = middleware and self.guarded
        guards = [HallucinationMiddleware(*self.judges, **self.options)] if checks else []
        return create_agent(self.model, [_search], middleware=guards, checkpointer=saver, **options)


def _answered(make: Making, name: str) -> Any:
    def generate(state: _Asked, config: RunnableConfig) -> Any:
        return {"answer": make.model.invoke(state["input"], config)}

    return make.graph(make.guard(generate), name, _Asked)


def _inside(make: Making) -> Any:
    guard = make.guard(make.model)

    def generate(state: MessagesState, config: RunnableConfig) -> Any:
        return {"messages": [guard.invoke(state["messages"], config)]}

    return make.graph(generate, "generate")


def _node(make: Making) -> Any:
    def generate(state: MessagesState, config: RunnableConfig) -> Any:
        return {"messages": [make.model.invoke(state["messages"], config)]}

    return make.graph(make.node(generate), "generate")


def _runnable_node(make: Making) -> Any:
    def generate(state: MessagesState, config: RunnableConfig) -> Any:
        return {"messages": [make.model.invoke(state["messages"], config)]}

    async def agenerate(state: MessagesState, config: RunnableConfig) -> Any:
        return {"messages": [await make.model.ainvoke(state["messages"], config)]}

    return make.graph(make.node(RunnableLambda(generate, agenerate)), "generate")


def _nested_mapping(make: Making) -> Any:
    def generate(state: _Asked, config: RunnableConfig) -> Any:
        message = make.model.invoke(state["input"], config)
        return {"answer": message, "draft": {"text": message.text, "all": [message]}}

    return make.graph(make.node(generate), "generate", _Asked)


def _guard_around_agent(make: Making) -> Any:
    agent = make.agent(middleware=False)
    guard = make.guard(agent, answer=lambda output: output["messages"][-1])
    return make.graph(guard, "agent")


def _guard_around_agent_in_a_function(make: Making) -> Any:
    agent = make.agent(middleware=False)
    guard = make.guard(agent | (lambda output: output["messages"][-1]))

    def answer(state: MessagesState, config: RunnableConfig) -> Any:
        return {"messages": [guard.invoke({"messages": state["messages"]}, config)]}

    return make.graph(answer, "agent")


GRAPHS: dict[str, Callable[[Making], Any]] = {
    "guard as a node": lambda make: _answered(make, "node"),
    "guard as a node, named as its function": lambda make: _answered(make, "generate"),
    "guard inside a node": _inside,
    "guarded_node": _node,
    "guarded_node of a runnable": _runnable_node,
    "guarded_node, nested mapping": _nested_mapping,
    "guarded_node of an agent": lambda make: make.graph(
        make.node(make.agent(middleware=False)), "agent"
    ),
    "guarded_node of a remembering agent": lambda make: make.graph(
        make.node(make.agent(True, middleware=False)), "agent"
    ),
    "guard around an agent as a node": _guard_around_agent,
    "guard around an agent inside a node": _guard_around_agent_in_a_function,
    "agent": lambda make: make.agent(make.saver),
    "agent as a node": lambda make: make.graph(make.agent(), "agent"),
    "agent, structured": lambda make: make.agent(make.saver, response_format=ToolStrategy(_Height)),
}


# --- What the model says --------------------------------------------------------------------------


def _calls(*arguments: dict[str, Any], name: str = "search", text: str = "") -> AIMessage:
    calls = [
        {"name": name, "args": given, "id": f"{at}-{len(text)}"}
        for at, given in enumerate(arguments)
    ]
    return AIMessage(text, tool_calls=calls)


SCRIPTS: dict[str, tuple[Any, ...]] = {
    "recovers": (wrong(0), RIGHT),
    "is refused": (wrong(0), wrong(1), wrong(2)),
    "is blocked": (wrong(0), wrong(1), wrong(2)),
    "cannot be judged": (wrong(0),),
}
_SEARCHES = _calls({"query": QUESTION}, text=wrong(5))
"""A tool call with a wrong text beside it. That text is no answer, and must be removed."""


def _height(number: int | None, fits: bool = True) -> dict[str, Any]:
    said = RIGHT if number is None else wrong(number)
    return {"said": said, "metres": 84 if fits else "many"}


STRUCTURED: dict[str, tuple[Any, ...]] = {
    "recovers": (_calls(_height(0), name="_Height"), _calls(_height(None), name="_Height")),
    "is refused": tuple(_calls(_height(at), name="_Height") for at in range(3)),
    "does not fit": (
        _calls(_height(0, fits=False), name="_Height"),
        _calls(_height(None), name="_Height"),
    ),
    "calls twice": (
        _calls(_height(0), _height(1), name="_Height"),
        _calls(_height(None), name="_Height"),
    ),
}


# --- Listening ------------------------------------------------------------------------------------


@dataclass
class Heard:
    """Hold what a client got."""

    things: list[Any] = field(default_factory=list)
    error: BaseException | None = None


def _stream(graph: Any, given: Any, mode: Any, subgraphs: bool, heard: Heard) -> None:
    for chunk in graph.stream(given, _THREAD, stream_mode=mode, subgraphs=subgraphs):
        heard.things.append(chunk)


async def _astream(graph: Any, given: Any, mode: Any, subgraphs: bool, heard: Heard) -> None:
    async for chunk in graph.astream(given, _THREAD, stream_mode=mode, subgraphs=subgraphs):
        heard.things.append(chunk)


async def _events(graph: Any, given: Any, mode: Any, subgraphs: bool, heard: Heard) -> None:
    found: AsyncIterator[Any] = graph.astream_events(
        given, _THREAD, version="v2", exclude_tags=["nostream"]
    )
    async for event in found:
        heard.things.append(event)


def _invoke(graph: Any, given: Any, mode: Any, subgraphs: bool, heard: Heard) -> None:
    heard.things.append(graph.invoke(given, _THREAD))


WAYS: dict[str, tuple[Callable[..., Any], Any, bool]] = {
    **{
        f"{mode if isinstance(mode, str) else 'all'}{', subgraphs' if inner else ''}, {how}": (
            listen,
            mode,
            inner,
        )
        for mode, inner, (how, listen) in product(
            [*MODES, MODES], [False, True], [("sync", _stream), ("async", _astream)]
        )
    },
    "events, nostream": (_events, None, False),
    "invoke": (_invoke, None, False),
}
if sys.version_info < (3, 11):  # there, LangGraph passes no config to tasks
    WAYS = {name: way for name, way in WAYS.items() if "async" not in name}


def attack(rounds: int, seed: int = 0, guarded: bool = True) -> Iterator[Tally]:
    """Run at most `rounds` combinations for each graph.

    A combination is a script, a way to listen, and whether there is a checkpointer.
    """
    draw, loop = random.Random(seed), asyncio.new_event_loop()
    for name in GRAPHS:
        tally = Tally(f"graph: {name}", "runs")
        scripts = STRUCTURED if "structured" in name else SCRIPTS
        every = list(product(scripts, WAYS, [True, False]))
        for script, way, saves in draw.sample(every, min(rounds, len(every))):
            with tally:
                _try(name, script, way, saves, tally, loop, guarded)
        yield tally
    loop.close()


def _try(
    name: str,
    script: str,
    way: str,
    saves: bool,
    tally: Tally,
    loop: asyncio.AbstractEventLoop,
    guarded: bool,
) -> None:
    example = f"{name}: {script}; {way}, {'with' if saves else 'without'} a checkpointer"
    saver = InMemorySaver() if saves else None
    says = (STRUCTURED if "structured" in name else SCRIPTS)[script]
    searches = (_SEARCHES,) if "agent" in name else ()
    model = Speaker(say=Script(*searches, *says))
    judge = "cannot decide" if script == "cannot be judged" else "rejects claims"
    options = {"on_fail": Block()} if script == "is blocked" else {}
    try:
        graph = GRAPHS[name](Making(model, options, judge, saver, guarded))
    except (DemurError, TypeError, ValueError) as error:
        tally.refuse(error)
        return
    heard = Heard()
    answered = "guard as a node" in name or "mapping" in name
    given: Any = {"input": QUESTION} if answered else {"messages": [("human", QUESTION)]}
    listen, mode, subgraphs = WAYS[way]
    _, heard.error = tried(lambda: listen(graph, given, mode, subgraphs, heard), loop)
    if isinstance(heard.error, Hung):
        tally.add("hung", way, example)
        return
    if seen := [one for one in [*heard.things, heard.error] if marks(one)]:
        mode_name = way.partition(",")[0]
        tally.add("leaks", f"{mode_name}, {script}: {where(seen[0])}", example)
    if saver is not None:
        _look_into(graph, saver, model, given, script, tally, example, loop)
    if type(heard.error) is DemurError:
        tally.refuse(heard.error)
    elif guarded:
        _compare(heard, script, name, tally, example)


def _look_into(
    graph: Any,
    saver: InMemorySaver,
    model: Speaker,
    given: Any,
    script: str,
    tally: Tally,
    ex: str,
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Search the state, every checkpoint, and what the model reads in the next turn."""
    kept = [saver.storage, saver.writes, saver.blobs]
    if marks(*map(_plain, kept)):
        tally.add("leaks", f"the checkpointer, {script}", ex)
    if marks(*graph.get_state_history(_THREAD)):
        tally.add("leaks", f"the state's history, {script}", ex)
    before = len(model.asked)
    again = {"messages": [("human", _AGAIN)]} if "messages" in given else {"input": _AGAIN}
    _, error = tried(lambda: graph.invoke(again, _THREAD), loop)  # which may be refused again
    if isinstance(error, Hung):
        tally.add("hung", "the next turn", ex)
    if len(model.asked) > before and marks(model.asked[before]):
        tally.add("leaks", f"the model is shown it in the next turn, {script}", ex)


def _plain(held: Any) -> Any:
    """Return what a saver holds, with plain dictionaries in place of default dictionaries."""
    return {key: _plain(value) for key, value in held.items()} if isinstance(held, dict) else held


def _compare(heard: Heard, script: str, name: str, tally: Tally, example: str) -> None:
    """Check that the run ended as it must: with the right answer, a refusal or an error."""
    told = repr(heard.things)
    error = type(heard.error).__name__ if heard.error else None
    # An answer that a function picks out cannot be replaced, so it is blocked.
    blocks = script == "is blocked" or ("around an agent as" in name and script != "recovers")
    if blocks:
        if error != "AnswerRejected":
            tally.add("wrong", f"{script}, and ends in {error or 'an output'}", example)
    elif error is not None:
        tally.add("wrong", f"{script}, and raises {error}", f"{heard.error} {example}")
    elif any(mode in example for mode in ("; values", "; updates", "; all", "; invoke")):
        wanted = {"is refused": REFUSAL, "cannot be judged": UNCHECKED}.get(script, RIGHT)
        if wanted not in told:
            tally.add("wrong", f"{script}, and its answer is missing", f"{example} {told[:200]}")
