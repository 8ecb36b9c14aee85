"""The README says what there is. `test_packaging.py` runs its examples as they are typed."""

from __future__ import annotations

import inspect
import re

import demur_ray
from demur_ray import command
from demur_ray._data import _COLUMNS
from ray_readme import PATH, blocks

TEXT = PATH.read_text(encoding="utf-8")


def test_its_examples_call_what_there_is() -> None:
    names = {*inspect.signature(demur_ray.score).parameters}
    called = re.findall(r"score\(rows, checkers, ([^)]*)\)", "\n".join(blocks("python")))
    assert len(called) == 2
    assert {one for call in called for one in re.findall(r"(\w+)=", call)} <= names
    assert {"fields", "retry", "num_cpus", "num_gpus", "workers"} <= names
    assert all(f"`{name}" in TEXT for name in ("num_cpus", "num_gpus", "workers", "retry"))


def test_it_names_the_columns_of_the_result() -> None:
    said = TEXT.partition("The result has a row for each answer and evaluator:")[2]
    named = re.findall(r"`(\w+)`", said.partition("\n\n")[0])
    assert set(named) <= {*_COLUMNS}
    assert {*_COLUMNS} - set(named) == {
        *("calls", "cached", "input_tokens", "output_tokens", "seconds")  # the usage
    }


def test_its_links_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", TEXT) if "://" not in link]
    assert len(links) > 2
    assert not [link for link in links if not (PATH.parent / link).exists()]


def test_the_command_finds_the_package() -> None:
    from importlib.metadata import entry_points

    (point,) = entry_points(group="demur.clusters", name="ray")
    assert point.load() is command.cluster
