"""Compute a share of a count, with its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z = 1.959963984540054
"""The number of standard deviations on either side of a normal mean that hold 95 %."""


@dataclass(frozen=True)
class Share:
    """Represent `count` items out of `total`."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """Return the share, in [0, 1]; None if the total is 0."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return Wilson's 95 % interval of the share, in [0, 1]; None if the total is 0.

        It is wide if there are few items, even if all of them agree. A bootstrap would then claim
        certainty.
        """
        return wilson(self.count / self.total, self.total) if self.total else None


def wilson(share: float, number: float) -> tuple[float, float]:
    """Return the 95 % interval, in [0, 1], of a share of `number` independent items."""
    middle = share + _Z**2 / (2 * number)
    reach = _Z * math.sqrt(share * (1 - share) / number + (_Z / (2 * number)) ** 2)
    scale = 1 + _Z**2 / number
    # At 0 and 1 the bound is exact, and rounding would change it.
    low = (middle - reach) / scale if share > 0 else 0.0
    return low, (middle + reach) / scale if share < 1 else 1.0
