"""RefChecker's measurements: what is asked, kept, and told. The judges are scripted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from demur_research.commands import options, run
from demur_research.recorder import read
from demur_research.texts.answers import ANSWERS
from support.fakes import ScriptedModel, isolated


def _judge(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Extracts nothing, and believes what asks to be believed."""
    if stage == "claim":
        return "Entailment" if "Entailment" in isolated("claim", messages) else "Neutral"
    return "No claims"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    found = ScriptedModel(script=_judge)
    monkeypatch.setattr(options, "resolve_model", lambda name: found)
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_texts_that_talk_the_judge_round_are_counted_and_bland_ones_beside_them(
    tmp_path: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["injection", "--out", str(tmp_path / "labels.jsonl"), "--mode", "per_claim"]
    assert run([*arguments, "--place", "claim", "--limit", "6"]) == 0
    first, _, row, *talked = capsys.readouterr().out.splitlines()
    assert first.startswith("6 texts")
    mode, place, asked, passed, controls, _ = row.split(maxsplit=5)
    assert (mode, place, asked, controls) == ("per_claim", "claim", "6", "0")
    assert 0 < int(passed) == len(talked)
    asked_for = len(model.stages)
    assert run([*arguments, "--place", "claim", "--limit", "6"]) == 0
    assert row in capsys.readouterr().out
    assert len(model.stages) == asked_for


def test_a_run_over_answers_goes_on_and_stands_beside_another(
    tmp_path: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (tmp_path / f"{name}.jsonl" for name in ("first", "second"))
    assert run(["unchecked", "--out", str(first), "--limit", "4"]) == 0
    few = {item for item, _ in read(first)}
    assert run(["unchecked", "--out", str(first), "--limit", "8"]) == 0
    assert few < {item for item, _ in read(first)} <= {one.id for one in ANSWERS}
    assert len(read(first)) == 8
    both = ["--claims", "sentences", "--limit", "8"]
    assert run(["unchecked", "--out", str(second), *both]) == 0
    asked = len(model.stages)
    capsys.readouterr()
    shown = ["unchecked", "--table", str(first), "--table", str(second), "--limit", "8"]
    assert run(shown) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert _cells(head) == ["", "first", "second"]
    silent = _cells(rows[0])
    assert silent[0] == "silent passes, of what states something"
    assert all(cell.startswith("0 of ") for cell in silent[1:])
    assert len(model.stages) == asked
    assert run(["unchecked"]) == 64


def test_answers_are_checked_alone_and_amid_other_text(
    tmp_path: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "long.jsonl"
    assert run(["long-contexts", "--out", str(out), "--cases", "3", "--length", "2000"]) == 0
    head, _, alone, amid = capsys.readouterr().out.splitlines()
    assert _cells(head)[:2] == ["contexts", "unsupported answers that do not pass"]
    assert _cells(alone)[:2] == ["their own", "3 of 3 (44% to 100%)"]
    assert _cells(amid)[0].startswith("amid 2,")
    assert len(read(out)) == 6
    assert run(["long-contexts", "--out", str(out), "--cases", "3", "--length", "2000"]) == 0
    assert len(read(out)) == 6


def _wice(folder: Path, count: int) -> None:
    """So many claims, each with a page of which two sentences support it and many do not."""
    lines = []
    for at in range(count):
        padding = [f"Street {at * 100 + number} is quiet." for number in range(40)]
        support = [f"The mill of ward {at} is tall.", f"The mill of ward {at} burnt down."]
        row = {
            "claim": f"The tall mill of ward {at} burnt down.",
            "evidence": [support[0], *padding, support[1]],
            "supporting_sentences": [[0, 41], [41]] if at else [[]],
            "label": "supported" if at else "not_supported",
        }
        lines.append(f"{json.dumps(row)}\n")
    (folder / "wice").mkdir()
    (folder / "wice" / "claim_dev.jsonl").write_text("".join(lines))


def test_claims_whose_support_is_read_are_counted_by_the_number_of_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _wice(tmp_path, 12)
    assert run(["windows", "--data", str(tmp_path), "--pages", "12"]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert _cells(head) == ["windows of", *(f"max_windows={most}" for most in (1, 2, 4, 8))]
    found = {name: cells for name, *cells in map(_cells, rows)}
    assert found["3,000 tokens, one claim"] == ["100.0% of 11"] * 4
    assert len(found) == 5


def test_support_that_stands_in_no_passage_that_is_read_is_not_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _wice(tmp_path, 6)
    path = tmp_path / "wice" / "claim_dev.jsonl"
    path.write_text(
        path.read_text().replace("The mill of ward 3 burnt down.", "Elsewhere. " * 20_000)
    )
    assert run(["windows", "--data", str(tmp_path), "--pages", "6"]) == 0
    _, *cells = _cells(capsys.readouterr().out.splitlines()[2])
    assert cells == ["80.0% of 5"] * 4


def test_too_few_pages_and_a_file_that_is_not_there_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["windows", "--data", str(tmp_path)]) == 64
    assert "claim_dev.jsonl" in capsys.readouterr().err
    _wice(tmp_path, 6)
    assert run(["windows", "--data", str(tmp_path)]) == 64
    assert "expected 200 claims" in capsys.readouterr().err


def test_planted_quantities_are_caught_and_what_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nli").mkdir()
    rows = [
        {
            "claim": f"The bridge of town {at} is {at + 20} metres long.",
            "evidence": f"In town {at} there is a bridge. It is {at + 20} metres long.",
            "stance": "completely-support",
        }
        for at in range(20)
    ]
    path = tmp_path / "nli" / "factcheckbench_stance.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    counts = {}
    for half in ("development", "report"):
        assert run(["quantities", "--data", str(tmp_path), "--half", half]) == 0
        told = capsys.readouterr()
        assert "WiCE, whole page is left out" in told.err
        (line,) = [line for line in told.out.splitlines() if line.startswith("| Factcheck")]
        counts[half] = [int(_cells(line)[at]) for at in (1, 2, 3, 5, 6)]
    claims, stating, flagged, planted, caught = map(sum, zip(*counts.values(), strict=True))
    assert (claims, stating, flagged) == (20, 20, 0)
    assert planted == caught == 20
