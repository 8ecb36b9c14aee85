"""Test what long references cost, and what is reported about windows that were not read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from demur import Budget, Evaluation, Guard, RefChecker, Sample
from demur._text import count_tokens
from support.fakes import ScriptedModel, isolated, labelled
from support.tiny import with_torch

DOCUMENTS, WORDS = 60, 2000
CLAIM = "The Kivik lighthouse was lit in 1911."


def document(number: int, words: int = WORDS) -> str:
    """Return a text about other things, with words and numbers of its own and with shared words."""
    return " ".join(
        f"House {number * 1000 + at} of ward {number} has a garden of {at} rows and an old well."
        for at in range(words // 15)
    )


LIBRARY = [document(number) for number in range(DOCUMENTS)]


def judge(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Support a claim whose exact text is in the window."""
    reference = isolated("reference", messages)
    if stage == "claim":
        return "Entailment" if isolated("claim", messages) in reference else "Neutral"
    return labelled(messages, lambda claim: "Entailment" if claim in reference else "Neutral")


def check(model: ScriptedModel, sample: Sample, **options: Any) -> Evaluation:
    return RefChecker(model, claims="sentences", **options).invoke(sample)


def tokens(model: ScriptedModel) -> int:
    return sum(count_tokens(str(one.content)) for each in model.requests for one in each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "checker"),
    [(CLAIM, "joint"), ("奥斯陆是挪威的首都。", "per_claim")],
    ids=["of their words", "of other words"],
)
def test_one_claim_and_many_long_documents_cost_one_request(claim: str, checker: str) -> None:
    model = ScriptedModel(script=judge)
    found = check(model, Sample(answer=claim, contexts=LIBRARY), checker=checker)
    assert found.label == "Neutral"
    assert len(model.requests) == 1
    assert tokens(model) < 4000


@pytest.mark.slow
@pytest.mark.parametrize(("place", "checker"), [(0, "joint"), (DOCUMENTS - 1, "per_claim")])
def test_the_passage_that_decides_is_found_in_whichever_document_it_stands(
    checker: str, place: int
) -> None:
    half = LIBRARY[place].index("House", WORDS * 2)
    told = f"{LIBRARY[place][:half]}{CLAIM} {LIBRARY[place][half:]}"
    library = [*LIBRARY[:place], told, *LIBRARY[place + 1 :]]
    model = ScriptedModel(script=judge)
    found = check(model, Sample(answer=CLAIM, contexts=library), checker=checker)
    assert found.passed is True
    (evidence,) = found.claims[0].evidence
    assert (evidence.context, evidence.text) == (place, CLAIM)
    assert told[evidence.span.start : evidence.span.end] == CLAIM


@pytest.mark.parametrize(("most", "checker"), [(1, "joint"), (5, "per_claim")])
def test_each_window_is_one_request_for_a_claim(most: int, checker: str) -> None:
    model = ScriptedModel(script=judge)
    options = {"checker": checker, "window_tokens": 400, "max_windows": most}
    found = check(model, Sample(answer=CLAIM, contexts=LIBRARY[:3]), **options)
    shown = [isolated("reference", each) for each in model.requests]
    assert len(shown) == len(set(shown)) == most
    assert all(count_tokens(one) <= 420 for one in shown)
    in_all = found.details["windows_in_all"]
    assert in_all == pytest.approx(sum(map(count_tokens, LIBRARY[:3])) / 400, abs=2)
    assert found.details["windows"] == found.details["windows_per_claim"] == most
    assert found.details["windows_left_out"] == in_all - most
    assert found.explanation == (
        "The references support 0 of 1 claim, 1 not found in what was read of them."
    )


@pytest.mark.parametrize(("checker", "shown"), [("joint", 1), ("per_claim", 2)])
def test_only_claims_that_are_asked_together_share_a_window(checker: str, shown: int) -> None:
    model = ScriptedModel(script=judge)
    answer = f"{CLAIM} House 2090 has a garden of 90 rows."
    found = check(
        model, Sample(answer=answer, contexts=LIBRARY[:3]), checker=checker, window_tokens=1500
    )
    assert found.details["windows"] == shown == len(model.requests)
    assert found.details["windows_per_claim"] == 1


@pytest.mark.parametrize("most", [1, 3])
def test_references_of_two_windows_are_read_whole_and_nothing_is_left_out(
    most: int, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [document(number, 300) for number in range(2)]
    size = max(map(count_tokens, texts))
    options = {"checker": "joint", "window_tokens": size, "max_windows": most}
    model = ScriptedModel(script=judge)
    found = check(model, Sample(answer=CLAIM, contexts=texts), **options)
    assert sorted(isolated("reference", each) for each in model.requests) == sorted(texts)
    assert (found.details["windows_in_all"], found.details["windows_left_out"]) == (2, 0)
    assert found.explanation == "The references support 0 of 1 claim, 1 not found in them."
    assert caplog.messages == []


class _Encoder:
    """Represent a cross-encoder that finds everything neutral and keeps the pairs it is given."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []
        names = {0: "contradiction", 1: "entailment", 2: "neutral"}
        config = type("Config", (), {"id2label": names})
        self.model = type("Model", (), {"config": config})

    def predict(self, pairs: Any, **options: Any) -> list[list[float]]:
        self.pairs += pairs
        return [[0.05, 0.05, 0.9] for _ in pairs]


@with_torch
@pytest.mark.parametrize(("most", "pairs"), [(None, 4), (2, 2)])
def test_a_cross_encoder_reads_so_many_passages_of_each_claim(most: int | None, pairs: int) -> None:
    encoder = _Encoder()
    answer = f"{CLAIM} 灯塔很高很旧。"
    found = check(
        ScriptedModel(script=judge),
        Sample(answer=answer, contexts=LIBRARY[:20]),
        checker=encoder,
        max_windows=most,
    )
    asked = [claim for _, claim in encoder.pairs]
    assert sorted(map(asked.count, set(asked))) == [pairs, pairs]
    assert found.details["windows_left_out"] == found.details["windows_in_all"] - pairs > 0
    assert found.details["estimate"] == {"calls": 0, "tokens": 0}


# --- A warning -----------------------------------------------------------------------------------


def test_once_a_minute_a_warning_names_the_cap_and_no_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "checks of long books"
    checker = RefChecker(
        ScriptedModel(script=judge), checker="joint", claims="sentences", name=name
    )
    sample = Sample(question="When was it lit?", answer=CLAIM, contexts=LIBRARY[:4])
    in_all, *_ = (checker.invoke(sample).details["windows_in_all"] for _ in range(3))
    (record,) = caplog.records
    assert (record.name, record.levelno) == (
        "demur.evaluators.refchecker.evaluator", logging.WARNING,
    )  # fmt: skip
    said = record.getMessage()
    assert said.startswith(f"{name} held a claim against 1 of about {in_all} windows")
    assert "(max_windows=1)" in said
    assert "give RefChecker a greater max_windows" in said
    for text in ("Kivik", "lit", "House", "garden"):
        assert text not in said.replace("little", "")


# --- An estimate ---------------------------------------------------------------------------------

MANY = " ".join(f"House {number} of ward 1 has a garden." for number in range(1003, 1033))


@pytest.mark.parametrize("checker", ["joint", "per_claim"])
@pytest.mark.parametrize("documents", [1, 6], ids=["read whole", "long"])
def test_the_estimate_is_what_is_asked_then(documents: int, checker: str) -> None:
    model = ScriptedModel(script=judge)
    sample = Sample(question="Which gardens?", answer=MANY, contexts=LIBRARY[:documents])
    found = check(model, sample, checker=checker)
    assert found.details["estimate"]["calls"] == len(model.requests) > 1
    assert found.details["estimate"]["tokens"] == pytest.approx(tokens(model), rel=0.02)


def test_what_a_budget_refuses_stands_in_the_trace_with_its_estimate() -> None:
    model = ScriptedModel(script=judge)
    checker = RefChecker(model, checker="per_claim", claims="sentences")
    guard = Guard(
        lambda question: {"answer": MANY, "context": LIBRARY[:6]},
        checker,
        budget=Budget(tokens=2000),
        on_error="open",
    )
    (evaluation,) = guard.with_trace().invoke("Which?").trace.attempts[0].evaluations
    assert evaluation.undetermined
    estimate = evaluation.details["estimate"]
    assert (estimate["calls"], len(model.requests)) == (30, 0)
    assert estimate["tokens"] > 30 * 2000
