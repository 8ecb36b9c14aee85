"""Test the table about what agents say that they did, with a scripted judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur_research.bench import Result
from demur_research.texts.actions import RIGHT_KINDS, WRONG_KINDS, action_traces
from support.fakes import isolated

Script = Callable[[str, Sequence[BaseMessage]], str | AIMessage]


def _calls_are_shown(messages: Sequence[BaseMessage]) -> bool:
    return "The assistant called" in isolated("reference", messages)


def _believes_all(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return supporting(0.9)


def _believes_calls(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return supporting(0.9 if _calls_are_shown(messages) else 0.1)


def _doubts_calls(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return supporting(0.1 if _calls_are_shown(messages) else 0.9)


def _says_nothing(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "Perhaps."


def _made(path: Path, script: Script | None, traces: int | None) -> Result:
    """Make the table of the first traces; the first two have calls, and the third has none."""
    model = None if script is None else LocalJudge(script=script)
    return made("actions", path, model, options={"judge": "local"}, limit=traces)


def _items(found: Result, *names: str) -> int:
    return sum(row_of(found, name).items or 0 for name in names)


@pytest.mark.slow
def test_every_claim_stands_in_a_row_of_its_part_its_kind_and_its_domain(path: Path) -> None:
    found = _made(path, _believes_all, None)
    for name, items in (("all claims", 300), ("claims that are no actions", 100)):
        assert _items(found, name) == items
        assert _items(found, f"{name}, in sight", f"{name}, held out") == items
    kinds = [f"wrong: {kind}" for kind in WRONG_KINDS] + [f"right: {kind}" for kind in RIGHT_KINDS]
    assert _items(found, *kinds) == 300
    assert _items(found, *{trace.domain for trace in action_traces()}) == 300


def test_the_figures_with_and_without_the_calls_are_told_apart(path: Path) -> None:
    found = _made(path, _believes_calls, 2)
    # Without the calls nothing passes. So no right claim fails by the calls alone.
    assert values(found, "all claims")[3:] == [0, 0, 100]
    passed, undetermined, failed, *_ = values(found, "all claims")
    assert undetermined == 0
    assert passed is not None
    assert passed > 50
    assert failed == 0
    # The rows of wrong claims have no share of right ones, and the other way round.
    assert values(found, "right: done") == [None, None, 0, 0, None, 100]
    assert values(found, "wrong: never")[2:4] == [None, None]
    of_all = row_of(found, "all claims")
    assert of_all.spent is not None
    assert of_all.spent.calls > 0


def test_what_fails_by_the_calls_alone_is_a_false_alarm(path: Path) -> None:
    found = _made(path, _doubts_calls, 2)
    _, _, failed, alarms, _, before = values(found, "all claims")
    assert before == 0
    assert alarms == failed
    assert alarms is not None
    assert alarms > 0
    # What is no action is judged by the results, whatever the judge makes of the calls.
    assert values(found, "claims that are no actions")[2:] == [0, 0, None, 0]


def test_undetermined_claims_are_counted_and_are_no_false_alarms(path: Path) -> None:
    found = _made(path, _says_nothing, 1)
    assert values(found, "all claims") == [0, 100, 100, 0, 0, 100]
    assert values(found, "claims that are no actions") == [None, None, 100, 0, None, 100]


def test_where_nothing_was_called_a_right_claim_passes_only_with_the_calls(path: Path) -> None:
    found = _made(path, _believes_all, 3)
    *_, failed, _, _, before = values(found, "right: told undone")
    assert before == 100
    assert failed is not None
    assert failed < 100


def test_the_table_is_replayed_without_a_model(path: Path) -> None:
    first = _made(path, _believes_calls, 2)
    again = _made(path, None, 2)
    assert [row.figures for row in again.rows] == [row.figures for row in first.rows]


def test_an_unknown_judge_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="judge: expected one of small, local, model"):
        made("actions", path, options={"judge": "large"})
