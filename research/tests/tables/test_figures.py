"""Test the tables about worked-out figures, with a scripted judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.texts.figures import worked_out_claims


def _believing(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return supporting(0.9)


def test_a_judge_that_believes_all_fails_what_stands_nowhere_and_follows_from_nothing(
    tmp_path: Path,
) -> None:
    model = LocalJudge(script=_believing)
    found = made("figures", tmp_path / "r", model, options={"judges": "local"})
    wrong, right = values(found, "local, set apart")
    # Rules alone fail some wrong figures, and far fewer right ones.
    assert wrong is not None
    assert right is not None
    assert 0 < right < 100 - wrong
    counts = [row_of(found, f"local, {half}").items for half in ("in sight", "set apart")]
    assert counts == [
        sum(one.held_out is held_out for one in worked_out_claims()) for held_out in (False, True)
    ]


def _row(claim: str, hallucinated: bool) -> LabelledRow:
    passage = "The office in Leeds has 12 employees and the office in York has 17 employees."
    answer = Answer(claim, hallucinated)
    return LabelledRow(claim, None, (answer,), contexts=(passage,), group=claim, metadata={})


def test_a_figure_is_explained_by_accident_only_where_a_calculation_gives_it(
    tmp_path: Path,
) -> None:
    rows = [
        _row("The offices in Leeds and York have 29 employees in total.", False),
        _row("The offices in Leeds and York have 31 employees in total.", True),
    ]
    found = made("figures-accidents", tmp_path / "r", None, {"everyday": rows, "aggrefact": rows})
    chance, wrong, refuted = values(found, "everyday")
    assert chance is not None
    assert chance < 50
    assert (wrong, refuted) == (0, 0)
