"""Run the Python of each page of the documentation, in order, in one namespace."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.louvre import serve
from support.openai_server import OpenAIServer, openai_server
from support.pages import DOCS, ROOT, fences, indented, run, scores_apart

PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("integrations/*/README.md")),
    ROOT / "judge" / "README.md",
    ROOT / "research" / "README.md",
    *sorted(DOCS.rglob("*.md")),
]
ELSEWHERE = {
    "README.md": "tests/real/test_readme.py",
    "docs/elsewhere.md": "tests/packaging/elsewhere/conftest.py",
    "docs/fine-tuning.md": "tests/exemplars/test_finetuning.py",
    "docs/llama-index.md": "tests/packaging/test_llama_index.py",
    "docs/ray.md": "tests/packaging/test_ray.py",
    "docs/web-service.md": "tests/guard/test_web_service.py",
    "integrations/llama-index/README.md": "tests/packaging/test_llama_index.py",
    "integrations/ray/README.md": "tests/packaging/test_ray.py",
}
"""The pages whose Python another test runs, with the objects that it needs, by that test's file."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


FIRST = "docs/quick-start.md"
"""The page that `make test` runs; `make documentation` runs all others."""


def with_python() -> Iterator[Any]:
    """Yield the pages whose Python is run here, with their marks."""
    for page in PAGES:
        if "```python" in page.read_text("utf-8") and name(page) not in ELSEWHERE:
            first = (pytest.mark.slow, pytest.mark.smoke)
            marks = first if name(page) == FIRST else pytest.mark.documentation
            yield pytest.param(page, marks=marks, id=name(page))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Enter an empty folder, and run an endpoint that stands for the reader's."""
    monkeypatch.chdir(tmp_path)
    with openai_server(serve) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-the-reader's-own")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.mark.parametrize("page", [*with_python()])
def test_every_example_runs_and_prints_what_the_page_says(page: Path, place: OpenAIServer) -> None:
    for fence, printed in run(page):
        if fence.printed is not None:
            where = f"{name(page)}:{fence.line}"
            text, scores = scores_apart(fence.printed.rstrip())
            found, found_scores = scores_apart(printed.rstrip())
            assert found == text, where
            assert found_scores == pytest.approx(scores, abs=0.05), where


def test_what_is_run_elsewhere_is_named_there() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")


def test_code_is_fenced_has_a_language_and_is_run_or_has_a_reason() -> None:
    for page in PAGES:
        assert indented(page) == [], page
        assert [fence.line for fence in fences(page) if not fence.language] == [], page
        lines = page.read_text(encoding="utf-8").splitlines()
        for fence in fences(page, "py"):
            above = lines[fence.line - 3]
            assert re.fullmatch(r"<!-- (not run: |run in ).+ -->", above), f"{page}:{fence.line}"


def test_lines_of_prose_are_short() -> None:
    assert [f"{name(page)}:{line}" for page in PAGES for line in long_lines(page)] == []


def long_lines(page: Path) -> list[int]:
    """Return the numbers of the lines that are too long."""
    text = page.read_text(encoding="utf-8")
    code = {
        at
        for fence in fences(page)
        for at in range(fence.line, fence.line + fence.text.count("\n"))
    }
    # Outputs of commands may have long lines.
    for output in re.finditer(r"<!-- output -->.*?<!-- end -->", text, re.DOTALL):
        first = text.count("\n", 0, output.start()) + 1
        code.update(range(first, first + output[0].count("\n")))
    return [
        at
        for at, line in enumerate(text.splitlines(), 1)
        if len(line) > 100
        and at not in code
        # Tables, and lines with a long URL, cannot be wrapped.
        and not line.startswith("|")
        and not re.search(r"\S{60,}", line)
    ]


def commands() -> list[tuple[str, str]]:
    """Return every `demur` command on the pages, with its page and line."""
    found = []
    for page in PAGES:
        for fence in fences(page, "console"):
            joined = fence.text.replace("\\\n", " ")
            found += [
                (f"{name(page)}:{fence.line}", line)
                for line in joined.splitlines()
                if line.startswith("demur ")
            ]
    return found


def test_every_command_is_one() -> None:
    import typer

    from demur.cli import app

    top: Any = typer.main.get_command(app)
    for where, line in commands():
        words = shlex.split(line.partition("|")[0].partition(" > ")[0], comments=True)[1:]
        command, context = top, top.make_context("demur", [], resilient_parsing=True)
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands, where
            command = command.commands[words.pop(0)]
        if hasattr(command, "commands"):
            assert words[:1] in (["--help"], ["--version"]), where
        else:
            command.make_parser(context).parse_args(args=words)  # It raises for unknown options.


def test_scripts_of_pages_are_modules() -> None:
    for page in PAGES:
        for fence in fences(page, "console"):
            for module in re.findall(r"^python -m (\S+)", fence.text, re.MULTILINE):
                parts = module.split(".")
                there = [
                    base.joinpath(*parts).with_suffix(".py").exists()
                    or base.joinpath(*parts).is_dir()
                    for base in (ROOT, *(ROOT / one / "src" for one in (".", "judge", "research")))
                ]
                elsewhere = {*sys.stdlib_module_names, "pytest"}
                assert any(there) or parts[0] in elsewhere, (page, module)


def test_targets_of_pages_are_in_the_makefile() -> None:
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for fence in fences(page, "console"):
            for target in re.findall(r"^make ([a-z-]+)", fence.text, re.MULTILINE):
                assert target in made | {"env"}, (page, target)
