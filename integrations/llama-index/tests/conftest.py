"""What holds for demur's own tests holds here: nothing leaves the machine."""

from __future__ import annotations

from support.offline import offline

__all__ = ["offline"]
