"""Test that `public_names.txt` lists what users can import, with signatures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_public_names_and_their_signatures_are_those_that_are_promised() -> None:
    command = [sys.executable, str(ROOT / "tools" / "public_names.py")]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    promised = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8")
    assert listed.splitlines() == promised.splitlines(), (
        "if you mean to change what users import: python tools/public_names.py > "
        "tests/public_names.txt"
    )
