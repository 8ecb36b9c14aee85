"""Test that every row of the papers' tables has a configuration with the row's settings."""

from __future__ import annotations

from typing import Any

import pytest

from demur.evaluators import CONFIGURATIONS, DESCRIPTIONS
from support.fewl import fewl, store

_MAIN = {
    "single + no penalty": "single",
    "single + penalty": "single-penalty",
    "multi + no penalty": "multi",
    "FEWL (Ours)": "fewl",
}
_WEIGHTS = {
    "FEWL (Uniform)": "fewl-uniform",
    "FEWL (Ours)": "fewl",
    "FEWL (Ideal)": "fewl-ideal",
}
_RANDOM = {
    "single + no penalty": "single",
    "single + penalty": "single-penalty-random",
    "multi + no penalty": "multi",
    "FEWL (Uniform)": "fewl-uniform-random",
    "FEWL (Ours)": "fewl-random",
    "FEWL (Ideal)": "fewl-ideal-random",
}
RANDOM = "v1 table 9, v2 table 11"
ROWS: dict[str, dict[str, str]] = {
    "v1 tables 1 and 3, v2 tables 1, 2, 7, 8, 10 and 14": _MAIN,
    "v1 tables 2 and 10, v2 tables 12 and 13": _WEIGHTS,
    RANDOM: _RANDOM,
    "v2 table 15": {**_MAIN, "single-best + no penalty": "single-best"},
    "v2 table 16": {
        f"{row} ({divergence.upper()})": f"{name}-{divergence}"
        for row, name in _MAIN.items()
        for divergence in ("js", "kl")
    },
}
WEIGHTINGS = {
    "single": "first",
    "single-best": "best",
    "multi": "uniform",
    "FEWL (Uniform)": "uniform",
    "FEWL (Ours)": "expertise",
    "FEWL (Ideal)": "ideal",
}
"""The weighting by the beginning of a row's name."""
CASES = [(table, row, name) for table, rows in ROWS.items() for row, name in rows.items()]


def test_every_row_of_the_papers_is_its_configuration() -> None:
    for table, row, name in CASES:
        options, wanted = CONFIGURATIONS[name], _settings(table, row)
        assert {key: options[key] for key in wanted} == wanted, (table, row)


def _settings(table: str, row: str) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "weighting": WEIGHTINGS[row.removesuffix(" (JS)").removesuffix(" (KL)").split(" + ")[0]],
        "penalty": "FEWL" in row or row.partition(" (")[0].endswith("+ penalty"),
        "divergence": {"(JS)": "js", "(KL)": "kl"}.get(row[-4:], "tv"),
        "normalization": "paper",
    }
    if table == RANDOM and wanted["penalty"]:
        wanted["neighbor_choice"] = "random"
    elif wanted["penalty"]:
        wanted["neighbor_choice"] = "nearest"
    return wanted


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_makes_an_evaluator(name: str) -> None:
    options = CONFIGURATIONS[name]
    made = fewl(**options)
    assert {key: getattr(made, key) for key in options} == dict(options)
    labels = {"correct": ["Yes."], "incorrect": ["No."]}
    sample = {"question": "1 0 | who?", "answer": "Ada.", "metadata": labels}
    near = store(("0 1 | why?", ["So.", "Thus."]))
    found = fewl(**options, neighbors=near).invoke(sample)
    assert found.score is not None
    assert (found.details["penalties"] is not None) is options["penalty"]


def test_each_has_a_description() -> None:
    assert list(DESCRIPTIONS) == list(CONFIGURATIONS)
