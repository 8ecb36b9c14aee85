"""Test that rooms and tests import a room only by its face, and that the map is true."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # On Python 3.10, pytest installs it.

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PLACES = [SOURCE, *sorted((ROOT / "integrations").glob("*/src")), ROOT / "research" / "src"]


def _room(module: str) -> str:
    """Return the room of a module, such as `demur.guard` for `demur.guard.call`."""
    return ".".join(module.split(".")[:2])


def _is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _imported(path: Path) -> Iterator[str]:
    """Yield the modules of demur that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "demur":
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if _is_module(whole) else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.partition(".")[0] == "demur")


FACES = {
    "demur.cli.demo.play",
    "demur.guard.edits",
    "demur.observe.log",
    "demur.runtime.prompting",
    "demur.schema.fingerprints",
    "demur.views.report",
    "demur.views.terminal",  # This module needs the command line's packages.
}
"""The rooms inside a room, which have a face of their own."""
OPEN = {"demur_research": ("demur.cli", "demur.evaluators")}
"""The laboratory repeats single stages of the methods, and its command prints as demur does."""


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


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_map_shows_the_rooms_of_the_contract_in_its_order() -> None:
    drawn = re.findall(r"^ [ ┌│└] ( *[\w.]+)", PAGE.split("```")[1], re.MULTILINE)
    rooms = [name for name in drawn if not name.startswith(" ")]
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = pyproject["tool"]["importlinter"]["contracts"][0]["layers"]
    assert rooms == [room for floor in floors for room in floor.split(" | ")]
    inner = {name.strip() for name in drawn if name.startswith(" ")}
    assert inner == {face.removeprefix("demur.").removesuffix(".play") for face in FACES}


def test_the_files_that_the_map_names_are_there() -> None:
    named = re.findall(r"`([\w/-]+/[\w-]+\.\w+)`", PAGE.partition("## Where to change")[2])
    places = (ROOT, SOURCE / "demur")
    methods = {"evaluators/METHOD/prompts.py"}
    assert len(named) > 60
    files = [one for one in named if one not in methods]
    assert [one for one in files if not any((at / one).is_file() for at in places)] == []


TESTED_ALONE = ("demur.evaluators",)
"""The rooms whose parsers and formulas are tested on their own."""
SEAMS = {
    "demur._system.once_a_minute",  # A warning must not count as a repeat in the next test.
    "demur.observe.redaction",
    "demur.runtime.prompting.prompts",  # A test builds cached prompts with other delimiters.
    "demur.views.report.page",  # A test leaves out 5 MB of a chart library.
    "demur.runtime.inherited",  # A test must not count as a fork of the test before it.
}
"""The modules behind a face that tests of other rooms may import, with the reasons."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [ROOT / "tests", ROOT / "research" / "tests", *sorted((ROOT / "integrations").glob("*/tests"))],
    ids=lambda place: str(place.relative_to(ROOT)),
)
def test_a_test_enters_other_rooms_by_their_faces(place: Path) -> None:
    deep = []
    for path in sorted(place.rglob("*.py")):
        folder = path.relative_to(place).parts[0]
        own = (f"demur.{folder}", f"demur._{folder}")
        deep += [
            f"{path.relative_to(ROOT)}: {module}"
            for module in _imported(path)
            if module.count(".") > 1
            and _room(module) not in (*own, *TESTED_ALONE)
            and module not in FACES | SEAMS
        ]
    assert not deep
