"""Make calls as evaluators do: as the steps of a generator that one of two drivers runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import HumanMessage

from demur.runtime import ChatCall, Outcome, Steps, ask_all

Run = Callable[..., Sequence[Outcome[Any]]]
"""A function that makes calls, given one by one, and returns their outcomes."""


def chat(model: Any, text: str = "hello", **fields: Any) -> ChatCall:
    return ChatCall(model, [HumanMessage(text)], "stage", **fields)


def steps(*calls: Any) -> Steps[list[Outcome[Any]]]:
    return (yield from ask_all(calls))
