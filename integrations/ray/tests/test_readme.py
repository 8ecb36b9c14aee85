"""Test that the page and the README are complete; `tests/packaging` runs their examples."""

from __future__ import annotations

import inspect
import re

import demur_ray
from demur_ray import command
from demur_ray._data import _COLUMNS
from ray_readme import PAGE, README, blocks
from ray_readme import command as command_of
from support.pages import DOCS

TEXT = PAGE.read_text(encoding="utf-8")
SITE = "https://demur-dev.github.io/demur/"


def test_its_examples_call_what_there_is() -> None:
    names = {*inspect.signature(demur_ray.score).parameters}
    called = re.findall(
        r"score\(rows, checkers, ([^)]*)\)", "\n".join(blocks(PAGE, "python", "py"))
    )
    assert len(called) == 3
    assert {one for call in called for one in re.findall(r"(\w+)=", call)} <= names
    assert {"fields", "retry", "num_cpus", "num_gpus", "workers"} <= names
    assert all(f"`{name}" in TEXT for name in ("num_cpus", "num_gpus", "workers", "retry"))


def test_it_names_the_columns_of_the_result() -> None:
    said = TEXT.partition("The result has a row for each answer and evaluator:")[2]
    named = re.findall(r"`(\w+)`", said.partition("\n\n")[0])
    assert set(named) <= {*_COLUMNS}
    assert {*_COLUMNS} - set(named) == {
        # These columns hold the usage.
        *("calls", "cached", "input_tokens", "output_tokens", "seconds")
    }


def test_the_readme_is_short_and_leads_to_the_page() -> None:
    short = README.read_text(encoding="utf-8")
    links = re.findall(rf"\]\({SITE}([\w-]+)/\)", short)
    assert links == ["ray"]
    assert (DOCS / "ray.md").exists()
    assert len(short.splitlines()) <= 40
    assert command_of(README) == command_of(PAGE)


def test_the_command_finds_the_package() -> None:
    from importlib.metadata import entry_points

    (point,) = entry_points(group="demur.clusters", name="ray")
    assert point.load() is command.cluster
