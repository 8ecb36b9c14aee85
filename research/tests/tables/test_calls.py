"""Test the table about calls whose values nobody gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches import made, row_of, values
from demur_research.texts.calls import RIGHT_KINDS, WRONG_KINDS, ToolCallCase, call_cases


def test_calls_are_stopped_as_often_as_the_page_says(path: Path) -> None:
    found = made("calls", path, None)
    invented, right = values(found, "all calls")
    assert invented >= 90
    assert right <= 3
    invented, right = values(found, "held out")
    assert invented >= 70
    assert right <= 3


def test_every_case_stands_in_a_row_of_its_part_its_kind_and_its_domain(path: Path) -> None:
    found = made("calls", path, None)
    every = row_of(found, "all calls").items
    assert every == len(call_cases())
    for names in (
        ["in sight", "held out"],
        [*WRONG_KINDS, *RIGHT_KINDS],
        [*{case.domain for case in call_cases()}],
    ):
        assert sum(row_of(found, name).items or 0 for name in names) == every


def test_there_are_enough_cases_of_25_kinds_of_tools() -> None:
    assert sum(bool(case.invented) for case in call_cases()) >= 60
    assert sum(not case.invented for case in call_cases()) >= 60
    assert len({case.domain for case in call_cases()}) == 25
    assert len({case.id for case in call_cases()}) == len(call_cases())


@pytest.mark.parametrize("changed", [{"kind": "free"}, {"messages": ({"type": "ai"},)}])
def test_a_case_that_contradicts_itself_is_refused(changed: dict[str, object]) -> None:
    case = next(case for case in call_cases() if case.invented)
    with pytest.raises(ValueError, match=case.id):
        ToolCallCase(**{**vars(case), **changed})  # type: ignore[arg-type]  # wrong on purpose
