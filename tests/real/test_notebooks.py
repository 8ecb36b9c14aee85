"""The notebooks run on the real local model, and what they show is what holds.

To have their outputs written anew: DEMUR_WRITE_NOTEBOOKS=1 pytest tests/real/test_notebooks.py
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

HOLDS = {
    "few-shot-exemplars.ipynb": """
import json

# The model is a small one: of four questions it may get one wrong.
words = {"planet": "Mercury", "violin": "four", "spider": "eight", "Rome": "Italy"}
best = {entry.question: entry.best.answer for entry in store.entries()}
assert best.keys() == dict(past).keys() and added.failed == ()
right = [words[key] in answer for key in words for asked, answer in best.items() if key in asked]
assert len(right) == 4 and sum(right) >= 3, best
assert all(len(entry.candidates) == 2 for entry in store.entries())

assert {question: len(chosen) for question, chosen in examples.items()} == dict.fromkeys(new, 3)
for chosen in examples.values():
    assert all(best[one["question"]] == one["answer"] for one in chosen), chosen
assert all(text.strip() for told in answers.values() for text in told.values()), answers

assert len(verdicts) == len(new) and all(one.error is None for one in verdicts), verdicts

lines = {
    json.dumps(json.loads(line), sort_keys=True)
    for side in ("train", "test")
    for line in Path(f"training-data/{side}.jsonl").read_text().splitlines()
}
assert lines == {
    json.dumps(
        {
            "completion": [{"content": answer, "role": "assistant"}],
            "prompt": [{"content": question, "role": "user"}],
        }
    )
    for question, answer in best.items()
}, lines
""",
}
"""By a notebook's name what is run after its last cell."""


def test_there_is_something_to_hold_of_each_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == sorted(HOLDS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_one_clean_run(path: Path) -> None:
    cells = _code(nbformat.read(path, as_version=4))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    _clean(cells)
    assert not re.search(r"/(?:home|root|tmp|Users|work)/", path.read_text(encoding="utf-8"))


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
    book.cells.append(new_code_cell(HOLDS[path.name]))

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
        book.metadata = nbformat.from_dict(kept)  # without the version of Python
        nbformat.write(book, path)


def _code(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def _clean(cells: list[Any]) -> None:
    """No errors, no warnings, nothing but what a cell shows."""
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"execute_result"}, outputs
