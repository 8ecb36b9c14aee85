"""Test the table about passages that disagree, with scripted judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, first_token, made, row_of, values
from demur_research.texts.disputes import disputed_claims
from support.fakes import isolated

CASES = disputed_claims()
STATEMENTS = {
    f"This text answers the question: {one.question.rstrip('?？').rstrip()}": one for one in CASES
}
APART = "one supports, the other contradicts"
ANSWERING = "and the other answers the question"


def told(support: float, contradiction: float) -> AIMessage:
    shares = {
        "Entailment": support,
        "Contradiction": contradiction,
        "Neutral": 1 - support - contradiction,
    }
    likely = sorted(shares.items(), key=lambda one: -one[1])
    return first_token({name: math.log(max(share, 1e-3)) for name, share in likely})


def script(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Judge that each pair disagrees, and that it answers the question where it really does."""
    text, claim = isolated("reference", messages), isolated("claim", messages)
    if of := STATEMENTS.get(claim):
        return told(0.99 if of.contested else 0, 0)
    case = next(of for of in CASES if of.claim.endswith(claim) or claim.endswith(of.claim))
    first, second = (case.passages[at].strip() for at in case.pair)
    if text in (first, second):
        return told(0.99, 0) if text == first else told(0, 0.99)
    return told(0.8, 0.2)


def test_each_way_finds_what_its_readings_tell_apart(tmp_path: Path) -> None:
    found = made("disputes", tmp_path / "r", LocalJudge(script=script))
    # No dispute is told from the others, so the limit marks none of either.
    assert values(found, APART) == [0, 0, 0, 0]
    disputes, others, held_out, others_held_out = values(found, ANSWERING)
    assert disputes is not None
    assert held_out is not None
    assert min(disputes, held_out) >= 80
    assert (others, others_held_out) == (0, 0)
    passing = values(found, "passes, as demur judges")
    assert all(share is not None and share >= 90 for share in passing)
    of_all = row_of(found, APART)
    assert of_all.items + of_all.undetermined == len(CASES)
    assert of_all.undetermined <= 3  # the script does not know what two claims say together
