"""Run the README as typed on the real local model: its Python, then its commands on the log."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from support.pages import ROOT, fences, run

pytestmark = [pytest.mark.real, pytest.mark.documentation]

README = ROOT / "README.md"
# The parts of the output that may differ slightly between processors.
VARIES = {
    r"\d+%": "..%",
    r"score 0\.\d+": "score ..",
    r"(recovered|passed): .*": r"\1: ...",
    r"Entailment: .*, .*": "...",
}


def told(text: str) -> list[str]:
    for pattern, stands in VARIES.items():
        text = re.sub(pattern, stands, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def test_every_snippet_prints_what_the_page_says(
    model: BaseChatModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = 0
    for fence, printed in run(README, names):
        if fence.printed is not None:
            shown += 1
            assert told(printed) == told(fence.printed), f"README.md:{fence.line}"
    assert shown == 3
    assert "1793" in names["result"].output["answer"]
    assert "1851" not in names["result"].output["answer"]
    names["store"].close()

    (worst,) = (fence for fence in fences(README, "console") if "demur log" in fence.text)
    found = subprocess.run(
        [sys.executable, "-m", *shlex.split(worst.text)],
        env={**os.environ, "COLUMNS": "100"},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert worst.printed is not None
    assert set(told(worst.printed)) <= set(told(found))
