"""Find the values of a tool call's arguments that nobody gave, before the tool runs."""

from demur.evaluators.call_grounding.evaluator import (
    CallGrounding,
    MissingValue,
    call_in,
    missing_values,
)

__all__ = ["CallGrounding", "MissingValue", "call_in", "missing_values"]
