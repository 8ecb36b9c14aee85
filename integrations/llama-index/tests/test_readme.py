"""Test that the page and the README are complete; `tests/packaging` runs their examples."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

from readme import PAGE, README, blocks
from support.pages import DOCS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest installs it there.

HERE = README.parent
SITE = "https://demur-dev.github.io/demur/"
# The reader installs these, but this environment cannot: they require openai below 3.
ELSEWHERE = ("llama_index.llms.openai",)


@pytest.mark.parametrize(("path", "least"), [(PAGE, 10), (README, 1)])
def test_what_the_examples_import_is_there(path: Path, least: int) -> None:
    imports = [
        node
        for block in blocks(path)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and node.module not in ELSEWHERE
    ]
    assert len(imports) > least
    for one in imports:
        module = importlib.import_module(str(one.module))
        missing = [alias.name for alias in one.names if not hasattr(module, alias.name)]
        assert not missing, f"{one.module} has no {missing}"


def test_every_class_and_event_that_the_page_names_is_there() -> None:
    ours = importlib.import_module("llama_index.evaluation.demur")
    events = importlib.import_module("llama_index.evaluation.demur.events")
    text = PAGE.read_text(encoding="utf-8")
    classes = set(re.findall(r"\b(?:\w+Evaluator|Guarded\w+Engine|ScoreEventHandler)\b", text))
    assert classes - {"FaithfulnessEvaluator"} == {
        *("HallucinationEvaluator", "RefCheckerEvaluator"),
        *("GuardedQueryEngine", "GuardedChatEngine", "ScoreEventHandler"),
    }
    assert all(hasattr(ours, name) for name in classes - {"FaithfulnessEvaluator"})
    assert callable(ours.trace_of)
    told = set(re.findall(r"`(\w+Event)`", text))
    assert told
    assert all(hasattr(events, name) for name in told)


def test_the_readme_is_short_and_its_links_to_the_site_lead_to_pages() -> None:
    text = README.read_text(encoding="utf-8")
    links = re.findall(rf"\]\({SITE}([\w-]+)/\)", text)
    assert links == ["llama-index"]
    assert all((DOCS / f"{link}.md").exists() for link in links)
    assert len(text.splitlines()) <= 40


def test_llamahubs_table_names_the_public_classes() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())
    hub = project["tool"]["llamahub"]
    ours = importlib.import_module(hub["import_path"])
    assert list(hub["class_authors"]) == sorted(hub["class_authors"])
    for name in hub["class_authors"]:
        assert getattr(ours, name).__module__.startswith("llama_index.evaluation.demur.")


def test_the_namespace_has_no_init() -> None:
    """Keep the namespace open, or LlamaIndex's other distributions would vanish behind this one."""
    sources = HERE / "src" / "llama_index"
    assert not (sources / "__init__.py").exists()
    assert not (sources / "evaluation" / "__init__.py").exists()
    package = sources / "evaluation" / "demur"
    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()
    namespace = importlib.import_module("llama_index")
    assert getattr(namespace, "__file__", None) is None
    assert Path(importlib.import_module("llama_index.core").__file__ or "").is_file()
