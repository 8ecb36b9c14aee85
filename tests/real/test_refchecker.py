"""RefChecker on the real local model: about twenty short cases, with margins for a small model."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from demur import ClaimLabel, RefChecker, Sample
from demur_research.claims import Labelled, auroc, judge

pytestmark = pytest.mark.real

CASES = [
    (
        "The Halden ferry sails every hour from six in the morning until midnight. Bicycles travel "
        "free of charge; dogs must be kept on a lead.",
        [("Bicycles travel free on the Halden ferry.", True)],
        ["The Halden ferry sails every ten minutes.", "The Halden ferry has a restaurant."],
    ),
    (
        "heapq.heappop(heap) pops and returns the smallest item from the heap. If the heap is "
        "empty, IndexError is raised.",
        [("heappop returns the smallest item.", True), ("heappop fails on an empty heap.", True)],
        ["heappop returns the largest item.", "heappop is safe to call from several threads."],
    ),
    (
        "Maria Lindqvist founded the bakery Kringla in Uppsala in 1987. Her son Erik took it over "
        "in 2015 and opened a second shop.",
        [("Kringla was founded by Maria Lindqvist.", True), ("Erik opened another shop.", True)],
        ["Kringla was founded in 2001.", "Maria Lindqvist won a prize for her bread."],
    ),
    (
        "The reservoir holds 40 million cubic metres of water. It was drained for repairs in the "
        "summer of 2009 and refilled within a year.",
        [("The reservoir was emptied in 2009.", True)],
        ["The reservoir holds 4 million cubic metres.", "Anglers catch trout in the reservoir."],
    ),
    (
        "Seed the tomatoes, chop them and simmer them with the onions for twenty minutes. Do not "
        "add salt before the end.",
        [("The tomatoes are simmered for twenty minutes.", True)],
        ["Salt is added at the beginning.", "The sauce keeps for a week in the fridge."],
    ),
    (
        "str.strip() returns a copy of the string without leading and trailing whitespace. The "
        "original string is not changed.",
        [("strip leaves the original string as it is.", True)],
        ["strip changes the string in place.", "strip was added in Python 2.7."],
    ),
]


def test_logprobs_tell_supported_claims_from_unsupported_ones(model: BaseChatModel) -> None:
    rows = []
    for at, (reference, supported, unsupported) in enumerate(CASES):
        claims = (*supported, *((claim, False) for claim in unsupported))
        rows += judge(Labelled("short", str(at), reference, claims), "logprobs", model).result[
            "rows"
        ]
    assert [row["error"] for row in rows] == [None] * 20
    value = auroc([row["score"] for row in rows], [row["supported"] for row in rows])
    assert value is not None
    assert value >= 0.85, [(row["claim"], row["label"], row["score"]) for row in rows]
    right = sum((row["label"] == ClaimLabel.ENTAILMENT) == row["supported"] for row in rows)
    assert right >= 15, [(row["claim"], row["label"]) for row in rows]


def test_an_answer_is_split_and_checked(model: BaseChatModel) -> None:
    context = (
        "Mont Aiguille stands in the Vercors, 58 km south of Grenoble. It is 2,087 metres high. "
        "It was first climbed in 1492 by Antoine de Ville, on the order of King Charles VIII."
    )
    checker = RefChecker(model)
    good = checker.invoke(
        Sample(
            question="What is Mont Aiguille?",
            answer="Mont Aiguille is 2,087 metres high. It was first climbed in 1492.",
            contexts=[context],
        )
    )
    bad = checker.invoke(
        Sample(
            question="What is Mont Aiguille?",
            answer="Mont Aiguille was first climbed in 1950 by Edmund Hillary, on a scooter.",
            contexts=[context],
        )
    )
    assert good.error is None
    assert bad.error is None
    assert good.details["checker"] == "logprobs"
    assert good.score > bad.score
    assert bad.passed is False
    assert all(claim.span is not None for claim in (*good.claims, *bad.claims))
    assert good.usage.input_tokens > 0


def test_a_refusal_is_an_abstention(model: BaseChatModel) -> None:
    found = RefChecker(model).invoke(
        {
            "question": "Who won the match?",
            "answer": "I'm sorry, but I don't know that.",
            "contexts": ["The match was played on Sunday."],
        }
    )
    assert (found.label, found.passed) == ("Abstain", None), found


@pytest.mark.parametrize("checker", ["joint", "per_claim"])
def test_the_other_checkers_can_be_read(model: BaseChatModel, checker: str) -> None:
    reference, supported, unsupported = CASES[2]
    claims = (*supported, *((claim, False) for claim in unsupported))
    rows = judge(Labelled("short", "0", reference, claims), checker, model).result["rows"]
    assert sum(row["label"] is not None for row in rows) >= 3, rows


def test_letters_in_another_form_hide_nothing() -> None:
    bold = {ord(a): chr(0x1D41A + n) for n, a in enumerate("abcdefghijklmnopqrstuvwxyz")}
    bold |= {ord(a): chr(0x1D7CE + n) for n, a in enumerate("0123456789")} | {
        ord("I"): "\U0001d408"
    }
    hidden = "It burned down in 1851.".translate(bold)
    sample = Sample(
        question="Where is the Louvre?",
        answer=f"The Louvre is in Paris. {hidden}",
        contexts=["The Louvre is a museum in Paris. It was opened to the public in 1793."],
    )
    found = RefChecker("local").invoke(sample)
    assert found.passed is False
    wrong = [claim for claim in found.claims if claim.label is not ClaimLabel.ENTAILMENT]
    assert [sample.answer[c.span.start : c.span.end] for c in wrong if c.span] == [hidden]
