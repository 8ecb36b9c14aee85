"""A share of what was counted, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z = 1.959963984540054
"""Standard deviations on either side of a normal mean that hold 95 %."""


@dataclass(frozen=True)
class Share:
    """So many of a number of things."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """In [0, 1]; None of nothing."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's, of 95 %, in [0, 1]; None of nothing.

        It is wide where there are few, also if all go one way: there a bootstrap would say that
        nothing is in doubt.
        """
        return wilson(self.count / self.total, self.total) if self.total else None


def wilson(share: float, number: float) -> tuple[float, float]:
    """The interval of 95 % of a share of so many independent things, all in [0, 1]."""
    middle = share + _Z**2 / (2 * number)
    reach = _Z * math.sqrt(share * (1 - share) / number + (_Z / (2 * number)) ** 2)
    scale = 1 + _Z**2 / number
    # At the ends without rounding.
    low = (middle - reach) / scale if share > 0 else 0.0
    return low, (middle + reach) / scale if share < 1 else 1.0
