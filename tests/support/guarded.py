"""Provide scripted chains, an evaluator and a listener for the tests of guards."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from demur import Evaluation, Guard, Sample, Usage
from demur.guard import Guarded, Trace


def judge(sample: Sample) -> Evaluation:
    """Pass an answer that contains "good", with a tenth of its number of "o" as the score."""
    passed = "good" in sample.answer
    return Evaluation(
        name="judge",
        score=sample.answer.count("o") / 10,
        passed=passed,
        explanation="" if passed else f"{sample.answer} is not good",
        usage=Usage(calls=1, input_tokens=10, output_tokens=1),
    )


class Chain:
    """Return the outputs in order, the last one again and again, and record the inputs."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.inputs: list[Any] = []

    def __call__(self, given: Any) -> Any:
        self.inputs.append(given)
        return self.outputs[min(len(self.inputs), len(self.outputs)) - 1]


def traced(guard: Guard[Any, Any], given: Any = "why?") -> Guarded[Any]:
    return guard.with_trace().invoke(given)


class Heard(BaseCallbackHandler):
    """Keep the events, as a client of `astream_events` gets them, and the traces."""

    run_inline = True

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.traces: list[Trace] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.events.append((name, data))

    def on_guard_end(self, trace: Trace, **kwargs: Any) -> None:
        self.traces.append(trace)

    def of(self, name: str) -> list[Any]:
        """Return the data of the events with this name."""
        return [data for told, data in self.events if told == name]
