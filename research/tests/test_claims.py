"""The benchmark's own arithmetic, and that a run goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur_research.claims import Labelled, auroc, choose, interval, table
from demur_research.commands import run
from support.openai_server import Answer, openai_server

SCORED = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), max_size=12)


@given(SCORED)
def test_auroc_is_the_share_of_pairs_in_order(rows: list[tuple[float, bool]]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a, yes in rows if yes for b, other in rows if not other]
    value = auroc([score for score, _ in rows], [supported for _, supported in rows])
    assert value == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


def test_intervals_hold_the_value_and_need_both_kinds() -> None:
    rows = [
        {"key": str(at), "score": (at * 7 % 10) / 10, "supported": at % 3 > 0} for at in range(40)
    ]
    bounds = interval(rows)
    value = auroc([row["score"] for row in rows], [row["supported"] for row in rows])
    assert bounds is not None
    assert value is not None
    assert bounds[0] < value < bounds[1]
    assert interval([row for row in rows if row["supported"]]) is None


def test_as_many_claims_of_each_kind_are_chosen_and_always_the_same() -> None:
    items = [Labelled("x", str(at), "r", (("claim", at % 4 == 0),)) for at in range(100)]
    chosen = choose(items, 20, seed=1)
    assert [item.claims[0][1] for item in chosen].count(True) == 10
    assert len(chosen) == 20
    assert choose(reversed(items), 20, seed=1) == chosen
    assert choose(items, 20, seed=2) != chosen


def test_a_run_goes_on_where_it_stopped_and_prints_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nli").mkdir()
    rows = [
        {"premise": f"p{at}", "hypothesis": f"h{at} {label}", "label": label}
        for at in range(4)
        for label in ("SUPPORTS", "REFUTES")
    ]
    file = tmp_path / "nli" / "fever_symmetric_v02.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def script(request: dict[str, Any], number: int) -> Answer:
        claim = request["messages"][-1]["content"]
        return Answer("Entailment" if "SUPPORTS" in claim else "Contradiction")

    out = tmp_path / "run.jsonl"
    arguments = ["claims", "--data", str(tmp_path), "--out", str(out), "--model", "openai:test"]
    arguments += ["--set", "fever_symmetric", "--mode", "per_claim", "--claims", "8"]
    with openai_server(script) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run(arguments) == 0
        assert len(server.requests) == 8
        out.write_text("".join(out.read_text().splitlines(keepends=True)[:2]))
        assert run(arguments) == 0
        assert len(server.requests) == 12
    assert "| fever_symmetric | per_claim | 8 | 0 | 1.000 | 1.000 to 1.000 | 1.000 |" in (
        capsys.readouterr().out
    )


def test_a_mode_without_any_label_has_no_figures() -> None:
    row = {"dataset": "x", "mode": "joint", "key": "1", "supported": True, "score": None}
    assert "| x | joint | 1 | 1 | - | - | - | - | - |" in table([row])
