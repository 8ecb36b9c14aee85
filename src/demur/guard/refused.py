"""Refuse chains that a guard cannot hold back: those with a memory, and agents.

The module knows LangGraph only by names, since demur does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda

from demur.shapes import ANSWER_KEYS


def refuse_memory(chain: Any) -> None:
    """Refuse a chain with a part that would remember answers which the guard rejects.

    Args:
        chain: A Runnable or a function. The check sees the Runnables that a function refers to by
            name.

    Raises:
        ValueError: A part of the chain keeps a memory; the message says what to do.
    """
    seen: set[int] = set()
    waiting = [*_runnables([chain])]
    while waiting:
        runnable = waiting.pop()
        if id(runnable) in seen:
            continue
        seen.add(id(runnable))
        names = {base.__name__ for base in type(runnable).__mro__}
        if _is_graph(runnable) and getattr(runnable, "checkpointer", None) not in (None, False):
            raise ValueError(
                f"the graph {_name(runnable)!r} inside the guard has a checkpointer of its own, "
                "which would keep the answers that the guard rejects: compile it without a "
                "checkpointer (give that to the graph around the guard), or, if it is an agent, "
                "guard it from the inside with HallucinationMiddleware of langchain-demur"
            )
        if "RunnableWithMessageHistory" in names:
            raise ValueError(
                "the message history inside the guard would keep the answers that the guard "
                "rejects: put it around the guard, RunnableWithMessageHistory(Guard(...), ...)"
            )
        waiting += _runnables(vars(runnable).values())
        if isinstance(runnable, RunnableLambda):
            waiting += runnable.deps


def refuse_agent(chain: Runnable[Any, Any]) -> None:
    """Refuse an agent or a graph whose answer is in its messages, before it is asked anything.

    Raises:
        ValueError: The chain is such a graph; the message says what to do.
    """
    given = getattr(chain, "output_channels", ())
    if _is_graph(chain) and "messages" in given and not {*ANSWER_KEYS} & {*given}:
        raise ValueError(
            f"{_name(chain)!r} is an agent or a graph, whose answer stands in its messages: guard "
            "an agent from the inside, where its steps are not repeated, with "
            "HallucinationMiddleware of langchain-demur; or have only its last message judged, "
            "then let through or blocked, with Guard(agent, ..., "
            "answer=lambda state: state['messages'][-1])"
        )


def _runnables(values: Iterable[Any]) -> Iterator[Runnable[Any, Any]]:
    """Yield the Runnables among values, also in lists, in mappings and in a graph's nodes."""
    for value in values:
        bound = value if isinstance(value, Runnable) else getattr(value, "bound", None)
        if isinstance(bound, Runnable):
            yield bound
        elif isinstance(value, Mapping):
            yield from _runnables(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _runnables(value)


def streams_steps(chain: Runnable[Any, Any]) -> bool:
    """Return whether a chain ends in a graph, whose stream is steps of nodes and not an answer."""
    while True:
        inner = getattr(chain, "last", None) or getattr(chain, "bound", None)
        if not isinstance(inner, Runnable) or _is_graph(chain):
            return _is_graph(chain)
        chain = inner


def _is_graph(runnable: Any) -> bool:
    return any(base.__name__ == "Pregel" for base in type(runnable).__mro__)


def _name(graph: Any) -> str:
    return str(getattr(graph, "name", None) or type(graph).__name__)
