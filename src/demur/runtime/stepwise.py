"""Stepwise: a Runnable whose work is a generator of calls, run in threads or in the event loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.utils import Input, Output
from typing_extensions import Self

from demur._frozen import FrozenRunnable
from demur.runtime.calls import Costs, Steps, adrive, drive
from demur.runtime.retry import CallPolicy


class Stepwise(FrozenRunnable[Input, Output], ABC):
    """Base of the evaluators and the judge: the two thin edges, sync and async, around one core.

    A subclass writes `_read`, `_steps` and `_accounted`; it never waits and keeps nothing on
    `self`, so one object serves any number of threads and loops at a time.
    """

    call_policy: CallPolicy | None = None
    """Retries, time limits and concurrency of the model calls. None: the model's own `call_policy`
    if it has one, as the local model does, else `CallPolicy()`."""

    @abstractmethod
    def _read(self, input: Input) -> Any:
        """The input, validated."""

    @abstractmethod
    def _steps(self, read: Any) -> Steps[Output]:
        """Do the work; usage is filled in by the caller."""

    def _work(self, read: Any) -> Steps[Output]:
        """`_steps`, and what is done around them."""
        return self._steps(read)

    @abstractmethod
    def _accounted(self, output: Any, ledger: Costs) -> Output:
        """The output with what it cost."""

    def __deepcopy__(self, memo: Any = None) -> Self:
        """A copy with the same models and stores, which are not its own."""
        return self.__copy__()

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Do the work for one input.

        Raises:
            pydantic.ValidationError: The input is none; the message names the field.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """As `invoke`, natively asynchronous."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _run(
        self, input: Input, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> Output:
        child = patch_config(config, callbacks=run_manager.get_child())
        return self._accounted(*drive(self._work(self._read(input)), child, self.call_policy))

    async def _arun(
        self, input: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> Output:
        child = patch_config(config, callbacks=run_manager.get_child())
        steps = self._work(self._read(input))
        return self._accounted(*await adrive(steps, child, self.call_policy))
