"""Define `Stepwise`, a Runnable whose work is a generator of calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from typing_extensions import Self

from demur.runtime.frozen import FrozenRunnable
from demur.runtime.policy import CallPolicy
from demur.runtime.steps import Costs, Steps, adrive, drive

Input = TypeVar("Input")
Output = TypeVar("Output")


class Stepwise(FrozenRunnable[Input, Output], ABC):
    """Run the same generator of calls in threads (`invoke`) and in the event loop (`ainvoke`).

    It is the base of the evaluators and the judge. A subclass writes `_work` and `_accounted`. It
    never waits and keeps nothing on `self`, so one object serves any number of threads and loops at
    the same time.
    """

    call_policy: CallPolicy | None = None
    """The retries, time limits and concurrency of the model calls.

    None: the model's own `call_policy` if it has one, as the local model does, else `CallPolicy()`.
    """

    @abstractmethod
    def _work(self, input: Input) -> Steps[Output]:
        """Validate the input and do the work; its costs are filled in afterwards."""

    @abstractmethod
    def _accounted(self, output: Output, costs: Costs) -> Output:
        """Return the output with its costs filled in."""

    def __deepcopy__(self, memo: Any = None) -> Self:
        """Return a copy that shares the models and stores, which do not belong to this object."""
        return self.__copy__()

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Do the work for one input.

        Raises:
            ValueError: The input is not valid; the message names the field.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """Do the same as `invoke` without blocking the event loop."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    # LangChain gives both methods the config for the children of the run.

    def _run(self, input: Input, config: RunnableConfig | None = None) -> Output:
        return self._accounted(*drive(self._work(input), config or {}, self.call_policy))

    async def _arun(self, input: Input, config: RunnableConfig | None = None) -> Output:
        return self._accounted(*await adrive(self._work(input), config or {}, self.call_policy))
