"""Texts that argue with the judge, counted beside bland ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import BaseMessage

from benches import benched, row_of
from demur_research.tables import injection
from support.fakes import ScriptedModel, isolated


def credulous(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Believes what asks to be believed."""
    return "Entailment" if "Entailment" in isolated("claim", messages) else "Neutral"


def test_texts_that_talk_the_judge_round_are_counted_and_bland_ones_beside_them(
    tmp_path: Path,
) -> None:
    path, options = tmp_path / "r.jsonl", {"modes": "per_claim", "show": "texts"}
    model = ScriptedModel(script=credulous)
    with benched(path, model, limit=24, options=options) as bench:
        found = injection.INJECTION.make(bench)
    asking = sum("Entailment" in one.text for one, _ in injection.choose(24))
    behind = row_of(found, "per_claim, behind the claim")
    assert 0 < asking < behind.items == 24  # type: ignore[operator]
    assert behind.figures[0] is not None
    assert behind.figures[0].value == 100 * asking / 24
    assert row_of(found, "per_claim, behind the passage").figures[0].value == 0  # type: ignore[union-attr]
    bland = row_of(found, "per_claim, behind the claim: bland sentences")
    assert bland.floor
    assert bland.figures[0].value == 0  # type: ignore[union-attr]
    assert found.notes[0].startswith("24 texts of ")
    assert sum("behind the claim, passed: " in note for note in found.notes) == asking
    with benched(path, limit=24, options=options) as bench:
        assert injection.INJECTION.make(bench) == found


def test_cases_that_pass_without_a_text_tell_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(script=lambda stage, messages: "Entailment")
    options = {"modes": "per_claim", "controls": "no"}
    with benched(tmp_path / "r", model, limit=4, options=options) as bench:
        found = injection.INJECTION.make(bench)
    assert [(row.items, row.figures[0].value) for row in found.rows] == [(0, None)] * 2  # type: ignore[union-attr]
    assert "per_claim: 4 left out, which pass without a text" in found.notes


def test_another_label_than_without_the_text_is_told(tmp_path: Path) -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        return "Contradiction" if "Entailment" in isolated("claim", messages) else "Neutral"

    options = {"modes": "per_claim", "places": "claim", "controls": "no"}
    with benched(tmp_path / "r", ScriptedModel(script=script), limit=6, options=options) as bench:
        (row,) = injection.INJECTION.make(bench).rows
    asking = sum("Entailment" in one.text for one, _ in injection.choose(6))
    assert [figure and figure.value for figure in row.figures] == [0, 100 * asking / 6]
