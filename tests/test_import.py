"""Test that importing demur is quick: it loads no package that only some users need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "transformers", "sentence_transformers", "llama_index", "chromadb", "ray")
LATER = ("sqlalchemy", "psycopg")
"""The packages that demur loads only when a log in a database is opened."""
OPTIONAL = (*HEAVY, "xllamacpp", "huggingface_hub", "typer", "rich", "opentelemetry", "langchain")


def _packages_after(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    return {name.partition(".")[0] for name in json.loads(found.splitlines()[-1])}


@pytest.mark.slow
def test_import_brings_no_optional_package() -> None:
    # LangChain itself loads parts of OpenTelemetry where that is installed.
    before = _packages_after("from langchain_core.language_models import BaseChatModel")
    every = _packages_after("import demur\nfor name in demur.__all__: getattr(demur, name)")
    assert not (every - before) & {*OPTIONAL, *LATER}


@pytest.mark.slow
def test_the_command_line_brings_nothing_heavy() -> None:
    assert not _packages_after("import demur.cli") & {*HEAVY, *LATER}


@pytest.mark.slow
def test_building_a_guard_brings_nothing_heavy() -> None:
    statement = (
        "from demur import RefChecker\n"
        "from langchain_core.language_models import FakeListChatModel\n"
        "from demur import Guard\n"
        "model = FakeListChatModel(responses=['x'])\n"
        "Guard(model, RefChecker(model))"
    )
    assert not _packages_after(statement) & set(HEAVY)


@pytest.mark.slow
def test_the_handlers_are_loaded_when_they_are_asked_for() -> None:
    code = (
        "import sys, demur\n"
        "assert 'demur.observe' not in sys.modules\n"
        "from demur import ScoreCallbackHandler\n"
        "assert 'demur.observe' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_dependency_of_the_core_is_imported() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.partition("\ndependencies = [")[2].partition("\n]")[0]
    declared = {re.match(r"[\w-]+", line.strip(' ",'))[0] for line in listed.split("\n") if line}
    imported = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"^ *(?:from|import) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert {name.replace("-", "_") for name in declared} <= imported


def test_public_names() -> None:
    import demur

    promised = {
        *("RefChecker", "Sample", "Claim", "ClaimLabel", "Evaluation", "Usage", "resolve_model"),
        *("Guard", "AnswerRejected", "Regenerate", "Abstain", "Annotate", "Block"),
        *("FEWL", "ExampleStore", "FEWLExampleSelector"),
        "ScoreCallbackHandler",
    }
    assert promised <= set(demur.__all__)
    assert all(hasattr(demur, name) for name in demur.__all__)
    assert set(demur.__all__) <= set(dir(demur))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = demur.Nothing
