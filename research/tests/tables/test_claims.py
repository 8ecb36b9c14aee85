"""Test checkers on labelled claims: with scripted replies, replayed, and by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import first_token, made, row_of, values
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.tables import claims
from support.fakes import ScriptedModel, isolated


def row(at: int, supported: bool, **of_row: object) -> LabelledRow:
    text = f"Mill {at} is {'tall' if supported else 'low'}."
    label = "SUPPORTS" if supported else "REFUTES"
    fields = {"contexts": (f"Mill {at} is tall.",), "group": f"mill {at}", **of_row}
    return LabelledRow(f"{at} {label}", None, (Answer(text, not supported, label=label),), **fields)


MILLS = [row(at, supported) for at in range(6) for supported in (True, False)]


def knows(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Contradict claims with "low", with a confidence that depends on the mill's number."""
    claim = isolated("claims" if stage == "joint" else "claim", messages)
    label = "Contradiction" if "low" in claim else "Entailment"
    if stage == "joint":
        return f"1. {label}"
    sure = 0.95 if "Mill 0" not in claim else 0.4
    other = math.log((1 - sure) / 2)
    names = ("Entailment", "Neutral", "Contradiction")
    shares = {name: math.log(sure) if name == label else other for name in names}
    return first_token(dict(sorted(shares.items(), key=lambda one: -one[1])))


def test_each_checker_stands_beside_the_floors(tmp_path: Path) -> None:
    path, sets = tmp_path / "r.jsonl", {"fever-symmetric": MILLS}
    options = {"sets": "fever-symmetric"}
    found = made(claims.CLAIMS, path, ScriptedModel(script=knows), sets, options=options)
    assert values(found, "fever-symmetric, per_claim") == [1.0, 100.0, 0.0, 100.0]
    assert values(found, "fever-symmetric, joint") == [1.0, 100.0, 0.0, 100.0]
    # The confidence for mill 0 is too low to let even the right claim pass.
    sure = values(found, "fever-symmetric, logprobs")
    assert sure == pytest.approx([1.0, 100 * 11 / 12, 0.0, 100 * 5 / 6])
    assert values(found, "fever-symmetric, everything passes") == [0.5, 50.0, 100.0, 100.0]
    assert values(found, "fever-symmetric, nothing passes") == [0.5, 50.0, 0.0, 0.0]
    assert values(found, "fever-symmetric, overlap with the reference") == [1.0, None, None, None]
    assert values(found, "fever-symmetric, longest claim") == [1.0, None, None, None]
    assert values(found, "fever-symmetric, shortest claim")[0] == 0.0
    per_claim = row_of(found, "fever-symmetric, per_claim")
    assert (per_claim.items, per_claim.undetermined) == (12, 0)
    assert per_claim.spent is not None
    assert per_claim.spent.calls == 1
    again = made(claims.CLAIMS, path, None, sets, options=options)
    assert again == found


def test_refchecker_as_a_whole_is_shown_the_question_and_the_bare_answer(tmp_path: Path) -> None:
    answers = (Answer("Lyon", False, "right"), Answer("Nice", True, "hallucinated"))
    rows = [LabelledRow("1", "Which town?", answers, contexts=("The town is Lyon.",))]

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            return "No claims"
        asked = isolated("claims" if stage == "joint" else "claim", messages)
        assert "Which town?" in asked
        return f"1. {'Entailment' if 'Lyon' in asked else 'Neutral'}"

    options = {"sets": "halueval-qa", "checkers": "answer, joint"}
    sets = {"halueval-qa": rows}
    found = made(claims.CLAIMS, tmp_path / "r", ScriptedModel(script=script), sets, options=options)
    assert values(found, "halueval-qa, answer") == [1.0, 100.0, 0.0, 100.0]
    assert values(found, "halueval-qa, joint") == [1.0, 100.0, 0.0, 100.0]


def test_what_cannot_be_decided_is_counted_and_not_scored(tmp_path: Path) -> None:
    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        claim = isolated("claim", messages)
        return "Perhaps." if "Mill 3" in claim else str(AIMessage("Neutral").content)

    options = {"sets": "fever-symmetric", "checkers": "per_claim"}
    sets = {"fever-symmetric": MILLS}
    found = row_of(
        made(claims.CLAIMS, tmp_path / "r", ScriptedModel(script=script), sets, options=options),
        "fever-symmetric, per_claim",
    )
    assert (found.items, found.undetermined) == (10, 2)
    assert [figure and figure.value for figure in found.figures] == [0.5, 50.0, 0.0, 0.0]


def test_as_many_claims_of_each_kind_are_chosen_and_a_small_choice_is_part_of_a_larger() -> None:
    every = claims.claims([row(at, at % 4 == 0) for at in range(100)])
    chosen = claims.choose(every, 20, seed=1)
    assert [one.supported for one in chosen].count(True) == 10
    assert len(chosen) == 20
    assert claims.choose(every[::-1], 20, seed=1) == chosen
    assert {one.key for one in claims.choose(every, 8, seed=1)} < {one.key for one in chosen}
    assert claims.choose(every, 20, seed=2) != chosen
    assert len(claims.choose(every, 1000, seed=1)) == 50


def test_partial_support_is_neither() -> None:
    partly = LabelledRow("1", None, (Answer("A.", True, label="partially_supported"),))
    unlabelled = LabelledRow("2", None, (Answer("A.", None),))
    assert claims.claims([partly, unlabelled]) == []
