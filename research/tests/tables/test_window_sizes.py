"""Test the table of windows of other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, supporting, values
from demur_research.bench import Result
from demur_research.datasets.rows import Answer, LabelledRow
from support.fakes import isolated

FILLING = " ".join(f"The bridge has an arch of {at} metres." for at in range(60))


def told(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Support a claim if the window says that the tower is green."""
    return supporting(0.9 if "tower is green" in isolated("reference", messages) else 0.1)


def make(path: Path, **options: str) -> Result:
    data = [
        LabelledRow(
            f"row {right}",
            None,
            (Answer(f"The tower at the bridge is {colour}.", not right),),
            contexts=(f"{FILLING} The tower is green.", "The bridge at the tower is red."),
            metadata={"dataset": "agg_one"},
        )
        for right, colour in ((True, "green"), (False, "red"))
    ]
    model = LocalJudge(script=told)
    options = {"judge": "local", **options}
    return made("judges-windows", path, model, {"aggrefact": data}, options=options)


def test_smaller_and_fewer_windows_hold_less_of_a_long_reference(path: Path) -> None:
    found = make(path, tokens="50,2000", windows="1,4")
    cost = {row.name: row.spent.calls for row in found.rows if row.spent is not None}
    small = "window_tokens=50, max_windows="
    whole = "window_tokens=2000, max_windows=1"
    assert len(cost) == 4
    assert cost[f"{small}1"] < cost[f"{small}4"]
    assert cost[whole] == 1
    assert values(found, whole)[3:] == [100, 0]


def test_without_options_the_windows_are_those_of_refchecker(path: Path) -> None:
    (row,) = make(path).rows
    assert row.name == "window_tokens=default, max_windows=default"


@pytest.mark.parametrize("option", ["tokens", "windows"])
def test_a_size_or_a_number_that_is_none_is_refused(path: Path, option: str) -> None:
    with pytest.raises(ValueError, match=f"{option}: expected whole numbers of at least 1"):
        make(path, **{option: "50,some"})
