"""What holds for demur's own tests holds here: nothing leaves the machine."""

from __future__ import annotations

from conftest import _offline

__all__ = ["_offline"]
