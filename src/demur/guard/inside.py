"""Keep what runs inside a guard from clients and from checkpointers.

Handlers that stream to a client do not hear it, and no checkpointer stores it. The module knows
LangGraph only by names, since demur does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from demur.runtime import Call, CallPolicy, Outcome, Scope, current_scope, within_scope

T_co = TypeVar("T_co", covariant=True)

_STREAMING = {"_StreamingCallbackHandler", "_V2StreamingCallbackHandler"}
"""The class names of LangChain's handlers that pass on what they hear to a client: those of
`astream_events`, `astream_log` and `stream_events`, and LangGraph's for messages and tools."""

_STREAM = "__pregel_stream"
"""The key under which LangGraph tells an inner graph where to write what it streams."""
_CHECKPOINTER = "__pregel_checkpointer"
"""The key under which an inner graph finds the checkpointer of the outer graph."""


def inside(config: RunnableConfig) -> RunnableConfig:
    """Return the config for what a guard runs, made from the guard's own config."""
    changed: RunnableConfig = {**config}
    manager = config.get("callbacks")
    if isinstance(manager, BaseCallbackManager):
        manager = manager.copy()
        manager.handlers = _not_streaming(manager.handlers)
        manager.inheritable_handlers = _not_streaming(manager.inheritable_handlers)
        changed["callbacks"] = manager
    configurable = {k: v for k, v in config.get("configurable", {}).items() if k != _STREAM}
    # With None, graphs inside use no checkpointer. Without the key, they would use their own.
    changed["configurable"] = {**configurable, _CHECKPOINTER: None}
    return changed


@contextmanager
def as_context(config: RunnableConfig) -> Iterator[None]:
    """Make a config the default for Runnables in the block that are not given one."""
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


@dataclass(frozen=True)
class Inside(Generic[T_co]):
    """Make a call of another kind so that handlers which stream to a client do not hear it."""

    call: Call[T_co]
    scope: Scope | None = None
    """The scope of the call; None: the scope of the code that makes it."""

    @property
    def stage(self) -> str:
        """Return the stage of the inner call."""
        return self.call.stage

    def at_once(self, policy: CallPolicy | None) -> int:
        """Return how many calls of the inner kind may run at once."""
        return self.call.at_once(policy)

    def run(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in this thread."""
        inner = inside(config)
        with as_context(inner), within_scope(self.scope or current_scope()):
            return self.call.run(inner, policy)

    async def arun(self, config: RunnableConfig, policy: CallPolicy | None) -> Outcome[T_co]:
        """Make the call in the running loop."""
        inner = inside(config)
        with as_context(inner), within_scope(self.scope or current_scope()):
            return await self.call.arun(inner, policy)


def _not_streaming(handlers: Iterable[BaseCallbackHandler]) -> list[BaseCallbackHandler]:
    return [handler for handler in handlers if not _streams(handler)]


def _streams(handler: BaseCallbackHandler) -> bool:
    named = any(base.__name__ in _STREAMING for base in type(handler).__mro__)
    # The method defines these classes, and recognises them even if they are renamed.
    return named or hasattr(handler, "tap_output_iter")
