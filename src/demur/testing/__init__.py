"""Fail tests whose answers are not grounded: the pytest plugin, and the assertion that it serves.

pytest loads `plugin` in every run, so this room imports the rest of demur only when it is used.
"""

from demur.testing.grounding import assert_grounded

__all__ = ["assert_grounded"]
