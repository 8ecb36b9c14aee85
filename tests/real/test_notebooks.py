"""Test that the notebooks run on the real local model, and that their results hold.

The checks of a notebook `notebooks/NAME.ipynb` are in `tests/real/notebooks/NAME.py`. They run
after its last cell, with its names. To write the outputs of the notebooks again, run
`DEMUR_WRITE_NOTEBOOKS=1 pytest tests/real/test_notebooks.py`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from langchain_core.language_models import BaseChatModel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CHECKS = Path(__file__).with_name("notebooks")
MOST_BYTES = 150_000


def test_each_notebook_has_its_checks_and_its_line_on_the_page() -> None:
    names = [path.stem for path in NOTEBOOKS]
    assert names == sorted(path.stem for path in CHECKS.glob("*.py"))
    page = (FOLDER.parent / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"(?m)^\| `([\w-]+)\.ipynb`", page)) == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_one_clean_run(path: Path) -> None:
    cells = _code(nbformat.read(path, as_version=4))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    _clean(cells)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|root|tmp|Users|work)/", text)
    assert len(text.encode()) < MOST_BYTES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_to_pages(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\((?!https?:)([^)#]+)", cell.source):
                assert (FOLDER / link).is_file(), f"{path.name}: {link}"


@pytest.mark.real
@pytest.mark.documentation
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(
    path: Path, tmp_path: Path, model: BaseChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    workplace = tmp_path / "workplace"
    workplace.mkdir()
    book = nbformat.read(path, as_version=4)
    kept = dict(book.metadata)
    book.cells.append(new_code_cell((CHECKS / f"{path.stem}.py").read_text("utf-8")))

    client = NotebookClient(
        book,
        timeout=900,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(workplace)}},
    )
    client.execute()

    book.cells.pop()
    _clean(_code(book))
    if os.environ.get("DEMUR_WRITE_NOTEBOOKS"):
        book.metadata = nbformat.from_dict(kept)  # This drops the version of Python.
        nbformat.write(book, path)


def _code(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def _clean(cells: list[Any]) -> None:
    """Check that the cells have no errors and no warnings, only results."""
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"execute_result"}, outputs
