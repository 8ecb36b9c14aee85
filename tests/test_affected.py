"""Test which suites a change reaches, by the files of this repository."""

from __future__ import annotations

import pytest
from tools.affected import SUITES, reasons
from tools.landed import ROOT

ALL = {suite.tests[0] for suite in SUITES}


def reached(*files: str) -> set[str]:
    return {suite.tests[0] for suite in reasons(files)}


@pytest.mark.smoke
@pytest.mark.slow
def test_a_change_reaches_what_imports_it_and_nothing_else() -> None:
    assert not {"integrations/langchain/tests", "tests/peers"} & reached("src/demur/cli/log.py")
    assert {
        "integrations/langchain/tests",
        "integrations/llama-index/tests",
        "tests/browser",
        "tests/real",
    } <= reached("src/demur/guard/call.py")
    assert reached("docs/faq.md") == {"tests/documentation"}
    assert reached("tests/guard/test_guard.py", "CONTRIBUTING.md") == set()
    assert "integrations/ray/tests" in reached("src/demur/scoring/rows.py")  # by a command


@pytest.mark.slow
def test_data_is_of_the_package_around_it() -> None:
    assert "tests/browser" in reached("src/demur/views/style.css")
    assert {"tests/real", "tests/packaging"} <= reached(
        "judge/src/demur_judge/judge-small-int8.onnx"
    )
    assert {"tests/real", "tests/packaging"} == reached("judge/.gitattributes")


@pytest.mark.slow
@pytest.mark.parametrize("file", ["pyproject.toml", "Makefile", "conftest.py", "new.toml"])
def test_what_nobody_imports_reaches_everything(file: str) -> None:
    assert reached(file) == ALL


def test_the_files_of_the_suites_are_there() -> None:
    for suite in SUITES:
        assert all((ROOT / place).exists() for place in suite.tests + suite.read), suite
