"""Hold the arguments of a guard."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.runnables import Runnable
from langchain_core.runnables.utils import Input, Output
from pydantic import PrivateAttr

from demur.guard.budget import Budget
from demur.guard.policies import prepared
from demur.guard.recoveries import Again, Cite, Final
from demur.runtime import FrozenRunnable
from demur.schema import OnAbstain
from demur.shapes import ContextsReader, Reader

OnError = Literal["open", "closed", "raise"]
Streaming = Literal["buffer", "sentence"]


class GuardArguments(FrozenRunnable[Input, Output]):
    """Hold the arguments of a guard, which each of its calls reads. `Guard` describes them."""

    chain: Runnable[Input, Output]
    evaluators: tuple[Runnable[Any, Any], ...]
    on_fail: dict[str, Again | Final]
    on_pass: Cite | None
    budget: Budget
    on_error: OnError
    on_abstain: OnAbstain
    streaming: Streaming
    question: Reader | None
    answer: Reader | None
    contexts: ContextsReader | None
    conversation: bool | Reader
    system: bool

    _policy: dict[str, Again | Final] = PrivateAttr()
    """A copy of `on_fail` in which chat models take the place of their names."""

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the names of models, so that a wrong name is reported before the first call."""
        super().model_post_init(context)
        self._policy = prepared(self.on_fail)
