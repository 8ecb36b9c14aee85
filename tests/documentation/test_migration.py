"""Run other libraries' calls on the migration page, each in its own environment."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from peers.speed.replies import UnknownPromptError, reply_to, text_of

from peers import environments
from support.openai_server import openai_server
from support.pages import DOCS, ROOT, Fence, fences

PAGE = DOCS / "migration.md"
VALIDATOR = "Say Yes or No."
"""A part of the prompt that the page itself defines, because guardrails-ai has no prompt."""
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_OUT": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "RAGAS_DO_NOT_TRACK": "true",
}
"""The environment variables that keep the libraries off the network."""


def calls() -> list[tuple[str, Fence]]:
    """Return the page's calls of other libraries, with the names of their environments."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = []
    for fence in fences(PAGE, "py"):
        where = re.fullmatch(r"<!-- run in \.peers/(.+) -->", lines[fence.line - 3])
        if where:
            found.append((where[1], fence))
    return found


CALLS = calls()


def judge(request: Mapping[str, Any], number: int) -> str:
    """Reply as a model that makes no mistake, in the form that the prompt asks for."""
    try:
        return reply_to(request)
    except UnknownPromptError:
        asked = text_of(request["messages"][-1])
        if VALIDATOR not in asked:
            raise
        return "No, the year is wrong." if "1851" in asked else "Yes."


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fence"), CALLS, ids=[name for name, _ in CALLS])
def test_the_call_prints_what_the_page_says(name: str, fence: Fence, tmp_path: Path) -> None:
    interpreter = ROOT / ".peers" / name / "bin" / "python"
    if not interpreter.exists():
        pytest.skip(f"its environment is not there: python -m peers.environments {name}")
    answer = fences(PAGE, "python")[0].text
    (tmp_path / ".guardrailsrc").write_text("id=none\nenable_metrics=false\n")
    with openai_server(judge) as server:
        kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **QUIET}
        url = {"OPENAI_BASE_URL": server.url, "OPENAI_API_BASE": server.url}
        told = subprocess.run(
            [interpreter, "-c", f"{answer}\n{fence.text}"],
            env={**kept, **url, "OPENAI_API_KEY": "none"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=180,
        )
    assert told.returncode == 0, told.stderr[-2000:]
    assert fence.printed is not None
    assert told.stdout.strip() == fence.printed.strip()
    assert server.requests


def test_every_library_that_the_page_names_has_a_call() -> None:
    assert [name for name, _ in CALLS] == [
        *("refchecker", "uqlm", "ragas", "deepeval", "guardrails-ai", "llama-index-evaluators")
    ]
    assert {name for name, _ in CALLS} <= {*environments.names()}


@pytest.mark.parametrize("page", ["migration.md", "peers.md"])
def test_versions_are_those_that_are_run(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, _ in CALLS:
        pinned = ROOT / "peers" / "requirements" / f"{name}.txt"
        first = pinned.read_text(encoding="utf-8").split()[0]
        assert re.search(rf"\b{re.escape(first.partition('==')[2])}\b", text), (page, first)
