"""Define the ways to listen to a Runnable, and what a client has of each in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableLambda

from demur import Guard
from demur.guard import REPLACE

from .play import Shape
from .truth import QUESTION

GIVEN = {"input": QUESTION}


@dataclass(eq=False)
class Heard(BaseCallbackHandler):
    """Hold what a client got."""

    shape: Shape
    text: str = ""
    """The answer that a client who follows the events has in the end."""
    error: BaseException | None = None
    things: list[Any] = field(default_factory=list)
    """Everything that the client got."""
    run_inline = True

    def take(self, chunk: Any) -> None:
        """Add a chunk of a stream."""
        self.things.append(chunk)
        self.text += self.shape.text(chunk)

    def whole(self, output: Any) -> None:
        """Add an answer that came whole, or raise it if it is an error."""
        self.things.append(output)
        if isinstance(output, BaseException):
            raise output
        self.text = self.shape.text(output)

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        """Follow an event of the guard."""
        self.things.append((name, data))
        if name == REPLACE:
            self.text = self.text[: data["keep"]]


Listen = Callable[[Runnable[Any, Any], Heard], Any]


def _config(heard: Heard) -> Any:
    return {"callbacks": [heard]}


def _invoke(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole(guard.invoke(GIVEN, _config(heard)))


async def _ainvoke(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole(await guard.ainvoke(GIVEN, _config(heard)))


def _batch(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole(guard.batch([GIVEN], _config(heard), return_exceptions=True)[0])


async def _abatch(guard: Runnable[Any, Any], heard: Heard) -> None:
    heard.whole((await guard.abatch([GIVEN], _config(heard), return_exceptions=True))[0])


def _stream(guard: Runnable[Any, Any], heard: Heard) -> None:
    for chunk in guard.stream(GIVEN, _config(heard)):
        heard.take(chunk)


async def _astream(guard: Runnable[Any, Any], heard: Heard) -> None:
    async for chunk in guard.astream(GIVEN, _config(heard)):
        heard.take(chunk)


async def _events(guard: Runnable[Any, Any], heard: Heard) -> None:
    """Read all events, but keep only the guard's own: inner runs show what the model wrote."""
    own = None
    async for event in guard.astream_events(GIVEN, version="v2"):
        own = own or event["run_id"]
        if event["event"] == "on_custom_event" or event["run_id"] == own:
            _hear(event, own, heard)


async def _quiet_events(guard: Runnable[Any, Any], heard: Heard) -> None:
    """Read all events that the filter from the docs lets through."""
    own = None
    async for event in guard.astream_events(GIVEN, version="v2", exclude_tags=["nostream"]):
        own = own or event["run_id"]
        _hear(event, own, heard)


async def _quiet_events_around(guard: Runnable[Any, Any], heard: Heard) -> None:
    """Read the filtered events of a chain in which the guard is a step."""
    steps = RunnableLambda(lambda given: given) | guard
    await _quiet_events(steps, heard)


def _hear(event: Any, own: Any, heard: Heard) -> None:
    if event["event"] == "on_custom_event":
        heard.on_custom_event(event["name"], event["data"])
    elif event["event"] == "on_chain_stream" and event["run_id"] == own:
        heard.take(event["data"]["chunk"])
    else:
        heard.things.append(event)


def _with_trace(guard: Runnable[Any, Any], heard: Heard) -> None:
    traced = guard.with_trace() if isinstance(guard, Guard) else guard
    found = traced.invoke(GIVEN, _config(heard))
    heard.whole(getattr(found, "output", found))


async def _awith_trace(guard: Runnable[Any, Any], heard: Heard) -> None:
    traced = guard.with_trace() if isinstance(guard, Guard) else guard
    found = await traced.ainvoke(GIVEN, _config(heard))
    heard.whole(getattr(found, "output", found))


LISTENERS: dict[str, Listen] = {
    "invoke": _invoke,
    "ainvoke": _ainvoke,
    "batch": _batch,
    "abatch": _abatch,
    "stream": _stream,
    "astream": _astream,
    "events": _events,
    "events, nostream": _quiet_events,
    "events, nostream, in a chain": _quiet_events_around,
    "with_trace": _with_trace,
    "with_trace, async": _awith_trace,
}


def where(thing: Any) -> str:
    """Return in a word what a client got."""
    if isinstance(thing, dict) and "event" in thing:
        return f"{thing['event']} of {thing['name']}"
    return str(thing[0]) if isinstance(thing, tuple) else type(thing).__name__
