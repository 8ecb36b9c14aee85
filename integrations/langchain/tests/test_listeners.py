"""Test that nobody hears or keeps a rejected answer, however a call ends and whoever listens."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest
from allpairspy import AllPairs
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState

from agent_server import LETTERS, REJECTED, TASKS_HAVE_CONTEXT, THREAD, graph_of
from demur import AnswerRejected, Evaluation, Guard, Sample
from demur.guard import Annotate, Block, Budget, EvaluatorFailed
from langchain_demur import HallucinationMiddleware, guarded_node

QUESTION: Any = {"messages": [("human", "How tall is it?")]}
MODES: Any = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
RIGHT = "It is 84 metres tall."
BETTER = "It is 85 metres tall."


class State(MessagesState):
    answer: Any


@dataclass(frozen=True)
class Ending:
    """Describe how a guarded call ends."""

    says: tuple[str, ...]
    options: Mapping[str, Any]
    leaves: str | None
    """The text that a client must see, unless it is the refusal."""


NOTED = {"any": "regenerate", "end": Annotate()}
ENDINGS = {
    "passed": Ending((RIGHT,), {}, RIGHT),
    "recovered": Ending((REJECTED, RIGHT), {}, RIGHT),
    "abstained": Ending((REJECTED, REJECTED), {}, "cannot give an answer"),
    "best_effort": Ending((REJECTED, BETTER), {"on_fail": NOTED}, BETTER),
    "blocked": Ending((REJECTED,), {"on_fail": Block()}, None),
    "open": Ending((REJECTED, "Perhaps 90."), {"on_error": "open"}, "Perhaps 90."),
    "closed": Ending((f"Perhaps {REJECTED}",), {}, "cannot give an answer"),
    "raise": Ending((f"Perhaps {REJECTED}",), {"on_error": "raise"}, None),
    "nothing_to_check": Ending((REJECTED, "Who knows."), {}, "Who knows."),
}  # fmt: skip


def judge(sample: Sample) -> Evaluation:
    """Judge by the number, and quote the answer as judges do."""
    quote = f"it says {sample.answer}"
    if "Perhaps" in sample.answer:
        return Evaluation(name="judge", error=quote, explanation=quote)
    if sample.answer == "Who knows.":
        return Evaluation(name="judge", label="Abstain")
    score = 1.0 if "84" in sample.answer else 0.5 if "85" in sample.answer else 0.0
    return Evaluation(name="judge", score=score, passed=score == 1.0, explanation=quote)


# --- Places of a guard ---------------------------------------------------------------------------


def model_of(ending: Ending) -> GenericFakeChatModel:
    """Return a model that streams word by word."""
    return GenericFakeChatModel(messages=iter([AIMessage(said) for said in ending.says] * 3))


def generating(ending: Ending, key: str = "messages") -> Callable[[Any], Any]:
    model = model_of(ending)

    def generate(state: Any) -> Any:
        return {key: model.invoke("?")}

    return generate


def an_agent(ending: Ending, guarded: bool, saver: Any = True) -> Any:
    options = {"budget": Budget(attempts=2), **ending.options}
    checks = [HallucinationMiddleware(judge, **options)] if guarded else []
    saver = InMemorySaver() if saver else None
    return create_agent(model_of(ending), [], middleware=checks, checkpointer=saver)


def an_agent_below(ending: Ending, guarded: bool) -> Any:
    return one_node(an_agent(ending, guarded, saver=False))


def a_node(ending: Ending, guarded: bool) -> Any:
    return one_node(_guarded(generating(ending), ending) if guarded else generating(ending))


def a_node_of_an_agent(ending: Ending, guarded: bool) -> Any:
    agent = create_agent(model_of(ending), [])
    return one_node(_guarded(agent, ending) if guarded else agent)


def a_node_of_a_chain(ending: Ending, guarded: bool) -> Any:
    chain: Any = RunnableLambda(lambda state: "?") | model_of(ending) | _as_messages
    chain = chain.with_config(run_name="generate")  # The chain has the name of its node.
    return one_node(_guarded(chain, ending) if guarded else chain)


def _as_messages(said: AIMessage) -> dict[str, Any]:
    return {"messages": [said]}


def a_node_that_calls_an_agent(ending: Ending, guarded: bool) -> Any:
    agent = create_agent(model_of(ending), [])

    def generate(state: State, config: RunnableConfig) -> Any:
        # The config is passed by hand, as in langgraph's documentation.
        found = agent.invoke({"messages": state["messages"]}, config)
        return {"messages": [found["messages"][-1]]}

    return one_node(_guarded(generate, ending) if guarded else generate)


def a_guard(ending: Ending, guarded: bool) -> Any:
    """Put a guard into a node; the guard's chain has the node's name."""
    return one_node(_in_guard(generating(ending, "answer"), ending, guarded))


def a_guard_of_an_agent(ending: Ending, guarded: bool) -> Any:
    def last(found: Any) -> Any:
        return {"answer": found["messages"][-1]}

    return one_node(_in_guard(create_agent(model_of(ending), []) | last, ending, guarded))


def _in_guard(chain: Any, ending: Ending, guarded: bool) -> Any:
    options = {"budget": Budget(attempts=2), **ending.options}
    return Guard(chain, judge, **options) if guarded else chain


def _guarded(node: Any, ending: Ending) -> Any:
    return guarded_node(node, judge, budget=Budget(attempts=2), **ending.options)


def one_node(node: Any) -> Any:
    return graph_of(node, InMemorySaver(), schema=State)


PLACES = [
    *(an_agent, an_agent_below, a_node, a_node_of_an_agent, a_node_of_a_chain),
    *(a_node_that_calls_an_agent, a_guard, a_guard_of_an_agent),
]


# --- Listeners -----------------------------------------------------------------------------------

Listen = Callable[[Any], Iterator[Any]]


def stream(graph: Any) -> Iterator[Any]:
    yield from graph.stream(QUESTION, THREAD, stream_mode=MODES, subgraphs=True)


def astream(graph: Any) -> Iterator[Any]:
    if not TASKS_HAVE_CONTEXT:
        pytest.skip("langgraph has no writer for tasks on this Python")
    yield from _collected(graph.astream(QUESTION, THREAD, stream_mode=MODES, subgraphs=True))


def all_events(graph: Any) -> Iterator[Any]:
    yield from _collected(graph.astream_events(QUESTION, THREAD, version="v2"))


def events_without_nostream(graph: Any) -> Iterator[Any]:
    options = {"version": "v2", "exclude_tags": ["nostream"]}
    yield from _collected(graph.astream_events(QUESTION, THREAD, **options))


def events_of_the_third_version(graph: Any) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from graph.stream_events(QUESTION, THREAD, version="v3")


def log(graph: Any) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from _collected(graph.astream_log(QUESTION, THREAD))


def _collected(chunks: Any) -> Iterator[Any]:
    heard: list[Any] = []

    async def collect() -> None:
        async for chunk in chunks:
            heard.append(chunk)

    try:
        asyncio.run(collect())
    finally:
        yield from heard


LISTENERS: list[Listen] = [
    stream,
    astream,
    all_events,
    events_without_nostream,
    events_of_the_third_version,
    log,
]


def heard_by(listen: Listen, graph: Any) -> list[Any]:
    """Return everything that a client gets, exceptions included, and everything in checkpoints."""
    heard: list[Any] = []
    try:
        heard.extend(listen(graph))
    except (AnswerRejected, EvaluatorFailed) as error:
        heard.append(str(error))
    saver = graph.checkpointer
    # All namespaces are read, also those of inner graphs. Blobs are msgpack, which has texts as
    # UTF-8.
    kept = repr([*saver.list(None)]) + _decoded([saver.blobs, saver.writes])
    return [*map(repr, heard), kept]


def _decoded(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple)):
        return " ".join(map(_decoded, value))
    return str(value)


def leaked(heard: list[str]) -> set[str]:
    """Return the letters of the rejected answer that were heard."""
    told = "".join(heard)
    assert "\\u04" not in told  # No letter is written as an escape.
    return LETTERS & set(told)


def _id(value: Any) -> str:
    return value if isinstance(value, str) else value.__name__


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "listen", "place"),
    [tuple(one) for one in AllPairs([list(ENDINGS), LISTENERS, PLACES])],
    ids=_id,
)
def test_nothing_rejected_is_heard_or_kept(place: Any, listen: Listen, ending: str) -> None:
    """Meet each pair of an ending, a listener and a place."""
    heard = heard_by(listen, place(ENDINGS[ending], True))
    assert not leaked(heard)
    leaves = ENDINGS[ending].leaves
    if leaves is not None:
        assert leaves in "".join(heard)


@pytest.mark.slow
@pytest.mark.parametrize(("listen", "place"), [*zip(cycle(LISTENERS), PLACES)], ids=_id)
def test_without_a_guard_it_is(place: Any, listen: Listen) -> None:
    assert leaked(heard_by(listen, place(ENDINGS["abstained"], False))) == LETTERS
