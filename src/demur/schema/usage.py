"""Define Usage: what model calls cost."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from demur.schema.base import Count, Value, at_most

Prices: TypeAlias = tuple[float, float]
"""The price of a million tokens of prompts, and the price of a million tokens of replies."""


class Usage(Value):
    """Count what model calls cost. Values can be added: `Usage() + usage`.

    A count above 2**40 is stored as 2**40. Sums therefore stay finite and fit into a database,
    whatever an endpoint reports.
    """

    calls: Count = 0
    """The requests that were sent to a model endpoint, including retries."""
    cached: Count = 0
    """The requests that were answered without a call: by a LangChain cache, or by an identical
    request that was in flight."""
    input_tokens: Count = 0
    """The prompt tokens that the endpoint reported; 0 if it reports none."""
    output_tokens: Count = 0
    """The generated tokens that the endpoint reported; 0 if it reports none."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(at_most)] = 0.0
    """The time spent in calls, summed over the calls. Calls that overlap are each counted in
    full."""

    def price(self, read: float, written: float) -> float:
        """Return the cost of the tokens, at the given prices.

        Args:
            read: The price of a million tokens of prompts.
            written: The price of a million tokens of replies.

        Returns:
            The cost, in the currency of the prices.
        """
        return (self.input_tokens * read + self.output_tokens * written) / 1e6

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            calls=self.calls + other.calls,
            cached=self.cached + other.cached,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
        )
