"""A room is entered by its face: nobody imports what stands behind one but the room itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PLACES = [SOURCE, *sorted((ROOT / "integrations").glob("*/src")), ROOT / "research" / "src"]


def _room(module: str) -> str:
    """The room of a module: `demur.guard` of `demur.guard.call`."""
    return ".".join(module.split(".")[:2])


def _is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _imported(path: Path) -> Iterator[str]:
    """The modules of demur that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "demur":
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if _is_module(whole) else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.partition(".")[0] == "demur")


FACES = {
    "demur.demo.play",  # for the command line, which needs no more of the demonstration
    "demur.observe.log",  # a room in the room: a log that is read
    "demur.views.terminal",  # needs the command line's packages
}
OPEN = {"demur_research": ("demur.cli", "demur.evaluators")}
"""The laboratory repeats the stages of the methods one by one; its command prints as demur does."""


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.relative_to(ROOT)))
def test_a_room_is_entered_by_its_face(place: Path) -> None:
    deep = []
    for path in sorted(place.rglob("*.py")):
        own = ".".join(path.relative_to(place).with_suffix("").parts)
        deep += [
            f"{path.relative_to(ROOT)}: {module}"
            for module in _imported(path)
            if module.count(".") > 1
            and _room(module) not in (_room(own), *OPEN.get(_room(own).partition(".")[0], ()))
            and module not in FACES
        ]
    assert not deep


TESTED_ALONE = ("demur.evaluators",)
"""The parsers and formulas of the methods."""
SEAMS = {
    "demur.observe.credentials",  # what redaction leaves of a secret, which views must not mark
    "demur.observe.fallback",  # whose mode is looked at
    "demur.observe.redaction",
    "demur.prompting.prompts",  # what it keeps is made anew with other delimiters
    "demur.report.page",  # 5 MB of a chart library are left out
    "demur.runtime.inherited",  # a test must not count as the fork of the one before
}
"""What tests of other rooms reach behind a face for, and why."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [ROOT / "tests", ROOT / "research" / "tests", *sorted((ROOT / "integrations").glob("*/tests"))],
    ids=lambda place: str(place.relative_to(ROOT)),
)
def test_a_test_enters_other_rooms_by_their_faces(place: Path) -> None:
    deep = []
    for path in sorted(place.rglob("*.py")):
        own = f"demur.{path.relative_to(place).parts[0]}"
        deep += [
            f"{path.relative_to(ROOT)}: {module}"
            for module in _imported(path)
            if module.count(".") > 1
            and _room(module) not in (own, *TESTED_ALONE)
            and module not in FACES | SEAMS
        ]
    assert not deep
