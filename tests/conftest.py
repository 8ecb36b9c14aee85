"""What holds for every test."""

from __future__ import annotations

from support import profiles
from support.offline import offline

__all__ = ["offline", "profiles"]
