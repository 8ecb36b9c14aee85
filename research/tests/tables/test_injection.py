"""Test texts that argue with the judge, counted beside neutral ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from benches import made, row_of
from demur_research.bench import Row
from demur_research.tables import injection
from support.fakes import ScriptedModel, isolated


def credulous(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Support every claim that asks to be supported."""
    return "Entailment" if "Entailment" in isolated("claim", messages) else "Neutral"


def value(row: Row) -> float | None:
    assert row.figures[0] is not None
    return row.figures[0].value


def test_texts_that_talk_the_judge_round_are_counted_and_bland_ones_beside_them(
    tmp_path: Path,
) -> None:
    path, options = tmp_path / "r.jsonl", {"modes": "per_claim", "show": "texts"}
    model = ScriptedModel(script=credulous)
    found = made(injection.INJECTION, path, model, limit=24, options=options)
    talked = [note for note in found.notes if "behind the claim, passed: " in note]
    behind = row_of(found, "per_claim, behind the claim")
    assert behind.items == 24
    assert 0 < len(talked) < 24
    assert value(behind) == pytest.approx(100 * len(talked) / 24)
    assert value(row_of(found, "per_claim, behind the passage")) == 0
    bland = row_of(found, "per_claim, behind the claim: bland sentences")
    assert bland.floor
    assert value(bland) == 0
    assert found.notes[0].startswith("24 texts of ")
    assert made(injection.INJECTION, path, limit=24, options=options) == found


def test_cases_that_pass_without_a_text_tell_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(script=lambda stage, messages: "Entailment")
    options = {"modes": "per_claim", "controls": "no"}
    found = made(injection.INJECTION, tmp_path / "r", model, limit=4, options=options)
    assert [(row.items, value(row)) for row in found.rows] == [(0, None)] * 2
    assert "per_claim: 4 left out, which pass without a text." in found.notes
