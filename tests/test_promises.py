"""Test that the tests that CONTRIBUTING.md names for demur's promises exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_promise_has_its_tests() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("## What must not be lost")[2].partition("\n## ")[0]
    named = re.findall(r"`(tests/[\w/.]+?\.py)(?:::(\w+))?`", table)
    assert len(named) > 20
    for file, test in named:
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
