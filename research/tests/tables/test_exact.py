"""Test the tables about wrong numbers and identifiers, with a scripted judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.texts.exact import exact_claims
from support.fakes import isolated

CLAIMS = {one.claim: one for one in exact_claims()}


def _blind_to_identifiers(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    claim = CLAIMS[isolated("claim", messages)]
    return supporting(0.9 if claim.supported or claim.kind == "identifier" else 0.1)


def test_the_judge_the_search_and_both_have_figures_of_their_own(tmp_path: Path) -> None:
    model = LocalJudge(script=_blind_to_identifiers)
    found = made("exact", tmp_path / "r", model, options={"judge": "local"})
    # The judge lets each wrong identifier pass, and no wrong number; it fails no right claim.
    alone, search, both, *failed = values(found, "identifiers")
    assert (alone, failed[0]) == (100, 0)
    assert search == both
    assert search is not None
    assert 20 < search < 40
    assert failed[1] == failed[2] == 0
    alone, search, both, *failed = values(found, "numbers")
    assert (alone, both, failed[0]) == (0, 0, 0)
    assert search is not None
    assert search > 50
    # What is changed to a string that stands nowhere is found; what is exchanged is not.
    assert values(found, "identifiers, two characters swapped")[:3] == [100, 0, 0]
    assert values(found, "identifiers, another of the passage")[:3] == [100, 100, 100]
    assert values(found, "identifiers, case")[:3] == [None] * 3
    judged = row_of(found, "all")
    assert (
        judged.items
        == len(CLAIMS)
        == row_of(found, "numbers").items
        + sum(row.items or 0 for row in found.rows if row.name == "identifiers")
    )
    assert judged.spent is not None
    assert judged.spent.calls == pytest.approx(1)


def _row(claim: str, hallucinated: bool, dataset: str) -> LabelledRow:
    return LabelledRow(
        claim,
        None,
        (Answer(claim, hallucinated),),
        contexts=("Order ORD-48213-B cost 31.20.",),
        group=claim,
        metadata={"dataset": dataset},
    )


def test_false_alarms_are_counted_in_each_set(tmp_path: Path) -> None:
    rows = [
        _row("Order ord 48213 b shipped.", False, "a"),
        _row("Order ORD-48231-B shipped.", True, "a"),
        _row("It cost 31.20.", False, "b"),
        _row("It cost 32.10, they say.", False, "b"),
        _row("It was cheap.", True, "b"),
    ]
    found = made("exact-alarms", tmp_path / "r", None, {"aggrefact": rows})
    assert values(found, "a") == [0, 100]
    assert values(found, "b") == [50, 0]
    assert values(found, "all") == [pytest.approx(100 / 3), 50]
