"""Test that importing demur is quick: it loads no package that only some users need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "sentence_transformers", "llama_index", "chromadb", "ray"}
LATER = {"sqlalchemy", "psycopg"}
"""The packages that demur loads only when a log in a database is opened."""
DRAWING = {"jinja2", "vl_convert"}
OPTIONAL = {
    *HEAVY,
    *("demur_judge", "xllamacpp", "huggingface_hub", "typer", "rich", "opentelemetry", "langchain"),
}


def _loaded_after(*steps: str) -> list[set[str]]:
    """Run the steps in one new process, and return the modules that are loaded after each."""
    told = "print(json.dumps(sorted(sys.modules)))\n"
    code = "import json, sys\n" + "".join(f"{step}\n{told}" for step in steps)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in ran.stdout.splitlines()]


def _packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.slow
@pytest.mark.smoke
def test_what_is_not_used_is_not_loaded() -> None:
    langchain, first, every, guard, _ = _loaded_after(
        # LangChain itself loads parts of OpenTelemetry where that is installed.
        "from langchain_core.language_models import BaseChatModel, FakeListChatModel",
        "from demur import Evaluation, Guard, RefChecker",
        "import demur\nfor name in demur.__all__: getattr(demur, name)",
        "model = FakeListChatModel(responses=['x'])\nGuard(model, RefChecker(model))",
        "assert Evaluation(name='x', error='y')._repr_html_()",
    )
    assert not {"demur.observe", "demur.views"} & first
    assert "demur.observe" in every
    assert not _packages(every - langchain) & (OPTIONAL | LATER)
    assert not _packages(guard) & HEAVY


@pytest.mark.slow
def test_the_command_line_brings_nothing_heavy_and_takes_signals_only_as_a_command() -> None:
    loaded, _ = _loaded_after(
        "import demur.cli, demur.views.report",
        "import contextlib, io, signal\n"
        "with contextlib.redirect_stdout(io.StringIO()): assert demur.cli.run(['--version']) == 0\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL",
    )
    assert not _packages(loaded) & (HEAVY | LATER | DRAWING)
