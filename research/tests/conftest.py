"""What holds for demur's own tests holds here: drawn examples, and nothing leaves the machine."""

from __future__ import annotations

from support import profiles
from support.offline import offline

__all__ = ["offline", "profiles"]
