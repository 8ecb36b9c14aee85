"""Test the table about what agents say that they did, with a scripted judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur_research.bench import Result
from demur_research.texts.actions import REPORT_KINDS, RIGHT_KINDS, WRONG_KINDS, action_traces

Script = Callable[[str, Sequence[BaseMessage]], str | AIMessage]


def _believes_all(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return supporting(0.9)


def _says_nothing(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "Perhaps."


def _made(path: Path, script: Script | None, traces: int | None) -> Result:
    """Make the table of the first traces of each file."""
    model = None if script is None else LocalJudge(script=script)
    return made("actions", path, model, options={"judge": "local"}, limit=traces)


def _items(found: Result, *names: str) -> int:
    return sum(row_of(found, name).items or 0 for name in names)


@pytest.mark.slow
def test_every_claim_stands_in_a_row_of_its_part_its_kind_and_its_domain(path: Path) -> None:
    found = _made(path, _believes_all, None)
    counts = {"all claims": 300, "claims that are no actions": 133, "all reports": 480}
    for name, items in counts.items():
        assert _items(found, name) == items
        assert _items(found, f"{name}, in sight", f"{name}, held out") == items
    kinds = [f"wrong: {kind}" for kind in WRONG_KINDS] + [f"right: {kind}" for kind in RIGHT_KINDS]
    assert _items(found, *kinds) == 300
    assert _items(found, *{trace.domain for trace in action_traces()}) == 300
    assert _items(found, *(f"reports: {kind}" for kind in REPORT_KINDS)) == 480


def test_what_passes_wrongly_and_what_fails_wrongly_are_counted(path: Path) -> None:
    found = _made(path, _believes_all, 2)
    passed, undetermined, failed = values(found, "all claims")
    assert (undetermined, failed) == (0, 0)
    assert passed is not None
    assert passed > 50
    # The rows of wrong claims have no share of right ones, and the other way round.
    assert values(found, "right: done") == [None, None, 0]
    assert values(found, "wrong: never")[2] is None
    of_all = row_of(found, "all claims")
    assert of_all.spent is not None
    assert of_all.spent.calls > 0


def test_undetermined_claims_are_counted(path: Path) -> None:
    found = _made(path, _says_nothing, 1)
    assert values(found, "all claims") == [0, 100, 100]
    assert values(found, "claims that are no actions") == [None, None, 100]


def test_the_table_is_replayed_without_a_model(path: Path) -> None:
    first = _made(path, _believes_all, 2)
    again = _made(path, None, 2)
    assert [row.figures for row in again.rows] == [row.figures for row in first.rows]


def test_an_unknown_judge_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="judge: expected one of small, local, model"):
        made("actions", path, options={"judge": "large"})
