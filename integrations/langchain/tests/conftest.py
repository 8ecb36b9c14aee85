"""Apply the rule of demur's own tests that nothing leaves the machine."""

from __future__ import annotations

from support.offline import offline

__all__ = ["offline"]
