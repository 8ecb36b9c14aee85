"""Test that the counts of each workload match `counts.txt`, and that changes are reported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_RECORD = _ROOT / "tests" / "counts.txt"


def _counts(*options: str) -> tuple[int, str]:
    """Run `tools.counts`; return its exit code and its output."""
    command = [sys.executable, "-m", "tools.counts", *options]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=300)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.slow
def test_what_is_asked_for_is_on_record_and_each_difference_is_told_and_can_be_written(
    tmp_path: Path,
) -> None:
    whole = _RECORD.read_text(encoding="utf-8")
    changed = {
        "zero-shot": "zero-shot  2  152  3  0  0  10",  # The calls fell; a reply and memory grew.
        "lm vs lm": "",
        "all false": "fortune  1  2  3  4  5  6",
    }
    here = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
    text = re.sub(r"CPython 3\.\d+", here, whole)
    for name, line in changed.items():
        text = re.sub(rf"^{name}  .*$", line, text, flags=re.MULTILINE)
    record = tmp_path / "counts.txt"
    record.write_text(text, encoding="utf-8")

    code, said = _counts("--file", str(record))
    assert code == 1
    _, *told = [line.split() for line in said.partition("\n\n")[0].splitlines()]
    (memory,) = (line for line in told if line[1] == "allocated")
    assert memory[:3] == ["zero-shot", "allocated", "10"]
    told.remove(memory)
    # Whatever else is told here differs from the record in `tests`.
    assert sorted(" ".join(line) for line in told) == [
        "all false is not on record",
        "fortune is no workload",
        "lm vs lm is not on record",
        "zero-shot calls 2 1 -1",
        "zero-shot reply 3 4 +1",
    ], said
    assert "python -m tools.counts --write" in said

    only = ("--file", str(record), "--only", "zero-shot", "lm vs lm")
    assert _counts(*only, "--write") == (0, "")
    now = record.read_text(encoding="utf-8")
    assert "fortune" not in now
    for name in ("zero-shot", "lm vs lm"):
        (row,) = re.findall(rf"^{name}  .*(?=  \S+$)", now, re.MULTILINE)
        assert row in whole
