"""Test that `messages.txt` lists every error message, so that changes to them are reviewed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "tests" / "messages.txt"


def test_messages_are_those_that_were_read() -> None:
    command = [sys.executable, str(ROOT / "tools" / "messages.py")]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert listed.splitlines() == LISTED.read_text(encoding="utf-8").splitlines(), (
        "read the changed messages (what was wrong, what was expected, what to do?), then: "
        "python tools/messages.py > tests/messages.txt"
    )
