"""Test that the attack in `tools/` finds no leak, and finds leaks once the guard is taken away."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="no alarms on Windows"),
]

_ROOT = Path(__file__).parents[1]
_LINE = re.compile(r"^(\S.*?) +([\d,]+) \w+ +([\d,]+) / ([\d,]+) / ([\d,]+) ", re.MULTILINE)
"""A line of the report: what was attacked, how often, and the counts of leaked, wrong and hung."""


def _attack(*options: str) -> tuple[int, str, dict[str, tuple[int, ...]]]:
    command = [sys.executable, "-m", "tools.attack", "--quick", *options]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=300)
    print(ended.stderr, file=sys.stderr)  # noqa: T201  # shown where the test fails
    counts = {
        what: tuple(int(one.replace(",", "")) for one in numbers)
        for what, *numbers in _LINE.findall(ended.stdout)
    }
    return ended.returncode, ended.stdout, counts


def test_nothing_gets_out_is_wrong_or_hangs() -> None:
    code, out, counts = _attack(
        *(f"--section={one}" for one in ("guards", "beside", "chunks", "edits"))
    )
    assert len(counts) >= 4, out
    assert code == 0, out
    assert all(tried > 0 and not any(bad) for tried, *bad in counts.values())


def test_without_the_guard_it_does() -> None:
    """Show that the attack can succeed: one that cannot proves nothing, and counts as wrong."""
    code, out, counts = _attack(
        "--unguarded", *(f"--section={one}" for one in ("guards", "chunks", "edits"))
    )
    assert len(counts) >= 3, out
    assert code == 1
    for what, (tried, leaks, wrong, hung) in counts.items():
        assert tried > 0, what
        assert leaks > tried / 4, what
        assert (wrong, hung) == (0, 0), out
