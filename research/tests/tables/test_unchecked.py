"""Test made-up answers with RefChecker: what passes unchecked, alone and amid other text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur import DemurError
from demur_research.tables import unchecked
from support.fakes import ScriptedModel, isolated


def disbelieves(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Extract nothing, and support nothing."""
    if stage == "extraction":
        return "No claims"
    lines = isolated("claims", messages).splitlines()
    return "\n".join(f"{line.partition('.')[0]}. Neutral" for line in lines)


def test_answers_that_no_judge_supports_do_not_pass_and_floors_do_what_they_say(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    options = {"judge": "model", "claims": "triplets,sentences", "by": "language"}
    model = ScriptedModel(script=disbelieves)
    found = made(unchecked.SILENT, path, model, limit=24, options=options)
    for form in ("triplets", "sentences"):
        assert values(found, f"claims={form}")[:4] == [0, 0, 0, 100]
    assert values(found, "everything passes") == [100, 100, 100, 0, 100]
    assert values(found, "nothing passes") == [0, 0, 0, 100, 100]
    assert row_of(found, "claims=triplets").items == 24
    parts = [row for row in found.rows if row.name.startswith("claims=triplets, ")]
    assert sum(row.items or 0 for row in parts) == 24
    spent = [row_of(found, f"claims={form}").spent for form in ("triplets", "sentences")]
    assert spent[0] is not None
    assert spent[1] is not None
    assert spent[0].calls > spent[1].calls
    assert made(unchecked.SILENT, path, limit=24, options=options) == found


def test_a_judge_that_fails_decides_nothing(tmp_path: Path) -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        raise DemurError("away")

    found = row_of(
        made(
            unchecked.SILENT,
            tmp_path / "r",
            ScriptedModel(script=script),
            limit=24,
            options={"judge": "model"},
        ),
        "claims=auto",
    )
    stating = sum(one.states for one in unchecked.choose(24))
    assert found.undetermined == stating
    assert [figure and figure.value for figure in found.figures] == [None, None, None, None, 0]


def test_answers_are_checked_alone_and_amid_other_text(tmp_path: Path) -> None:
    lengths: list[int] = []

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        lengths.append(len(str(messages[-1].content)))
        return disbelieves(stage, messages)

    path, options = tmp_path / "r.jsonl", {"judge": "model", "length": "2000", "windows": "1,2"}
    found = made(
        unchecked.LONG_CONTEXTS, path, ScriptedModel(script=script), limit=3, options=options
    )
    alone, *amid = found.rows[:3]
    assert alone.name == "their own"
    assert [row.name.partition(", max")[2] for row in amid] == ["_windows=1", "_windows=2"]
    assert all(row.name.startswith("amid 2,") for row in amid)
    for row in (alone, *amid):
        assert [figure and figure.value for figure in row.figures] == [100, 0]
        assert row.items == 6
    assert max(lengths) > min(lengths) + 2000
    assert values(found, "everything passes") == [0, 100]
    assert values(found, "nothing passes") == [100, 0]
    assert made(unchecked.LONG_CONTEXTS, path, limit=3, options=options) == found


def test_the_small_judge_and_the_local_one_can_be_measured(tmp_path: Path) -> None:
    model = LocalJudge(script=lambda stage, messages: supporting(0.9))
    found = made(unchecked.SILENT, tmp_path / "r", model, limit=24, options={"judge": "local"})
    assert values(found, "claims=auto")[2:4] == [100, 0]
    small = made(unchecked.SILENT, tmp_path / "s", None, limit=24)
    assert row_of(small, "claims=auto").spent is None
    with pytest.raises(ValueError, match="expected one of small, local, model, got 'small,local'"):
        made(unchecked.SILENT, tmp_path / "t", model, options={"judge": "small,local"})
