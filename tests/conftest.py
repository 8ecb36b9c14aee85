"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from support.offline import offline

__all__ = ["offline"]

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
