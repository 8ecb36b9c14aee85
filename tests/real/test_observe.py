"""Scores out of callbacks, by the real local model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.language_models import BaseChatModel

pytestmark = [pytest.mark.real, pytest.mark.documentation]


def test_the_third_use_of_the_readme_works_as_typed(model: BaseChatModel, tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = [part.split("```", 1)[0] for part in readme.split("```python\n")[1:]]
    (example,) = (block for block in blocks if "ScoreCallbackHandler" in block)
    (tmp_path / "use.py").write_text(example)
    # A script of its own, since what is written is written at its end.
    subprocess.run([sys.executable, "use.py"], cwd=tmp_path, check=True, timeout=300)
    consoles = [part.split("```", 1)[0] for part in readme.split("```console\n")[1:]]
    (commands,) = (block for block in consoles if "demur log summary" in block)
    for command in commands.splitlines():
        arguments = command.partition("#")[0].split()
        shown = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            check=True,
            timeout=60,
            capture_output=True,
            text=True,
        )
        assert ("report.html" if "report" in arguments else "RefChecker") in shown.stdout
    assert "RefChecker" in (tmp_path / "report.html").read_text(encoding="utf-8")
    listed = subprocess.run(
        [sys.executable, "-m", "demur", "log", "list", "scores.sqlite"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Where is the Louvre, and since when is it a museum?" in listed.stdout
