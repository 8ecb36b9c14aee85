"""Test the tables about references that disagree, with scripted judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, first_token, made, row_of, values
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.texts.disputes import disputed_claims
from support.fakes import isolated

CASES = disputed_claims()
QUESTIONS = {one.question.rstrip("?？"): one for one in CASES}


def told(support: float, contradiction: float) -> AIMessage:
    shares = {
        "Entailment": support,
        "Contradiction": contradiction,
        "Neutral": 1 - support - contradiction,
    }
    likely = sorted(shares.items(), key=lambda one: -one[1])
    return first_token({name: math.log(max(share, 1e-3)) for name, share in likely})


def judge(answering: bool | None) -> LocalJudge:
    """Return a judge to which one passage of each pair supports, and the other contradicts.

    Args:
        answering: Whether each passage answers the question; None: where they disagree.
    """

    def script(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        text, claim = isolated("reference", messages), isolated("claim", messages)
        for question, of in QUESTIONS.items():
            if claim == f"This text answers the question: {question}":
                return told(0.99 if (of.contested if answering is None else answering) else 0, 0)
        case = next(of for of in CASES if of.claim.endswith(claim) or claim.endswith(of.claim))
        supporting, contradicting = (case.passages[at].strip() for at in case.pair)
        if text in (supporting, contradicting):
            return told(0.99, 0) if text == supporting else told(0, 0.99)
        return told(0.8, 0.2) if supporting in text and contradicting in text else told(0, 0)

    return LocalJudge(script=script)


def test_a_judge_finds_as_many_as_its_readings_tell_apart(tmp_path: Path) -> None:
    for answering, others in ((None, 0), (True, 90)):
        found = made("disputes", tmp_path / f"{answering}", judge(answering))
        disputes, marked, passing = values(found, "set apart")
        assert disputes is not None
        assert marked is not None
        assert disputes >= 90
        assert marked == 0 if others == 0 else marked >= others
        assert passing is not None
        assert passing >= 90  # they are marked, and keep their label
    assert row_of(found, "in sight").items == 280
    assert row_of(found, "set apart").items == 160


def test_the_price_is_the_requests_that_seek_disputes_take(tmp_path: Path) -> None:
    passage = "The pool opens at nine.\n\nThe pool has a sauna."
    claims = [("The pool opens at nine.", False), ("The pool opens at ten.", True)]
    rows = [
        LabelledRow(claim, None, (Answer(claim, wrong),), (passage,), claim, {})
        for claim, wrong in claims
    ]
    alone = [
        LabelledRow("alone", None, (Answer("It is red.", True),), ("It is red.",), "alone", {})
    ]

    def script(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        return told(0.99, 0) if "nine" in isolated("claim", messages) else told(0.3, 0.6)

    found = made(
        "disputes-price", tmp_path / "r", LocalJudge(script=script), {"everyday": [*rows, *alone]}
    )
    spent = {name: row_of(found, name).spent for name in ("ignore", "mark")}
    assert all(spent.values())
    calls = {name: one.calls for name, one in spent.items() if one}
    # Both paragraphs share a word with the wrong claim, and the right one is sure.
    assert calls == {"ignore": 1, "mark": 2}
    assert row_of(found, "mark").items == 2
    assert values(found, "mark") == [0, 0]
