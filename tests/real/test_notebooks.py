"""Test that the notebooks run on the real local model, and that their results hold.

The checks of a notebook `notebooks/NAME.ipynb` are in `tests/real/notebooks/NAME.py`. They run
after its last cell, with its names. `DEMUR_WRITE_NOTEBOOKS=1 make notebooks` writes the outputs
again, and two hashes into the notebook's metadata: of the cells with their outputs, and of the code
that ran. A notebook whose cells are others is refused: outputs are written by a run alone. A
notebook whose code is the same is not run again, unless `DEMUR_RUN_ALL` is set (`make test-all`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from langchain_core.language_models import BaseChatModel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from tools.imports import digest, reached

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
    book = nbformat.read(path, as_version=4)
    assert book.metadata.get("demur", {}).get("cells") == _cells(book), (
        "DEMUR_WRITE_NOTEBOOKS=1 make notebooks"
    )
    cells = _code(book)
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
@pytest.mark.timeout(900)  # A machine with slow cores may take minutes.
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(
    path: Path, tmp_path: Path, model: BaseChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = nbformat.read(path, as_version=4)
    code = _ran(book, path)
    write = bool(os.environ.get("DEMUR_WRITE_NOTEBOOKS"))
    if book.metadata.get("demur", {}).get("code") == code and not (
        write or os.environ.get("DEMUR_RUN_ALL")
    ):
        pytest.skip("it ran with this very code")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    workplace = tmp_path / "workplace"
    workplace.mkdir()
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
    if write:
        kept["demur"] = {"cells": _cells(book), "code": code}
        book.metadata = nbformat.from_dict(kept)  # This drops the version of Python.
        nbformat.write(book, path)


def _cells(book: Any) -> str:
    """Return a hash of what a reader sees: the cells with their outputs."""
    seen = [
        [
            cell.source,
            [[output.get("data"), output.get("text")] for output in cell.get("outputs", ())],
        ]
        for cell in book.cells
    ]
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


def _ran(book: Any, path: Path) -> str:
    """Return a hash of the code that a run of the notebook uses: its own, its checks, and ours."""
    texts = [
        *(cell.source for cell in _code(book)),
        (CHECKS / f"{path.stem}.py").read_text("utf-8"),
    ]
    return digest(reached(texts), *texts)


def _code(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def _clean(cells: list[Any]) -> None:
    """Check that the cells have no errors and no warnings, only results."""
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"execute_result"}, outputs
