"""Test what is kept of a question, in Chroma's metadata and in the lines of a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur._text import replace_surrogates
from demur.exemplars import Candidate, Entry
from demur.exemplars.entries import (
    as_line,
    candidate_id,
    entry_of,
    from_line,
    from_metadata,
    is_score,
    to_metadata,
)

NOW = "2026-11-22T10:00:00+00:00"
WHOLE = st.characters(exclude_categories=["Cs"])
"""The characters that UTF-8 can encode."""
TEXTS = st.text(WHOLE, min_size=1, max_size=9).filter(str.strip)
CANDIDATES = st.builds(
    Candidate,
    answer=TEXTS,
    score=st.floats(allow_nan=False, allow_infinity=False),
    scorer=st.sampled_from(["given", "abc", "def"]),
    scored_at=st.sampled_from([NOW, "2025-01-01T00:00:00+02:00"]),
    source=st.none() | st.text(WHOLE, max_size=5),
    parts=st.dictionaries(st.text(WHOLE, max_size=5), st.none() | st.just([-0.5, 1.0]), max_size=2),
)
ENTRIES = st.lists(CANDIDATES, min_size=1, max_size=4, unique_by=lambda one: one.answer)


def candidate(answer: str = "a", score: float = 1.0, scorer: str = "given") -> Candidate:
    return Candidate(answer, score, scorer, NOW)


@given(TEXTS, ENTRIES)
@settings(max_examples=25)
def test_a_line_and_metadata_hold_a_question_with_candidates(
    question: str, candidates: list[Candidate]
) -> None:
    line = json.loads(json.dumps(as_line(Entry(question, tuple(candidates)))))
    assert from_line(line) == [(question, one) for one in candidates]
    for one in candidates:
        metadata = to_metadata(question, one)
        assert metadata.keys() == {"group", "kept"}
        assert from_metadata(metadata) == (question, one)
        assert candidate_id(question, one.answer, one.scorer).startswith(f"{metadata['group']}-")


@given(TEXTS, ENTRIES, st.sampled_from(["given", "abc"]), st.randoms())
@settings(max_examples=25)
def test_an_entry_has_its_scorers_candidates_best_first_whatever_came_first(
    question: str, candidates: list[Candidate], scorer: str, chance: Any
) -> None:
    found = entry_of(question, candidates, scorer)
    assert all(one.scorer == scorer for one in found.candidates)
    assert not any(one.scorer == scorer for one in found.stale)
    assert sorted(found.all, key=repr) == sorted(candidates, key=repr)
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert found.best == (found.candidates[0] if found.candidates else None)
    chance.shuffle(candidates)
    assert entry_of(question, candidates, scorer) == found


@given(TEXTS, st.text(), st.sampled_from(["given", "abc"]))
def test_a_candidate_is_known_by_question_answer_and_scorer(
    question: str, answer: str, scorer: str
) -> None:
    id_ = candidate_id(question, answer, scorer)
    assert id_ == candidate_id(f" {question}\n", replace_surrogates(answer), scorer)
    others = {("?" + question, answer, scorer), (question, answer + "x", scorer)}
    assert id_ not in {candidate_id(*other) for other in {*others, (question, answer, "x")}}


# --- Values that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"answer": " "}, "expected a text as answer, got ' '"),
        ({"score": None}, "expected a finite number as score, got None"),
        ({"score": float("nan")}, "expected a finite number as score, got nan"),
        ({"scorer": ""}, "expected a text as scorer, got ''"),
        ({"scored_at": None}, "expected a text as scored_at, got None"),
        ({"scored_at": "yesterday"}, "yesterday"),
        ({"scored_at": "2026-11-22T10:00:00"}, "expected a time with a zone as scored_at"),
        ({"source": 7}, "expected a text or None as source, got 7"),
        ({"parts": None}, "expected an object as parts, got None"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_candidate_is_refused_that_says_something_else(
    changed: dict[str, Any], message: str
) -> None:
    told = {**asdict(candidate()), **changed}
    with pytest.raises(ValueError, match=message):
        from_line({"question": "q", "candidates": [told]})
    with pytest.raises(ValueError, match=message):
        from_metadata({"group": "g", "kept": json.dumps({"question": "q", **told})})


@pytest.mark.parametrize(
    "line",
    [
        None,
        {"question": "q", "candidates": []},
        {"question": "q", "candidates": [{"answer": "a"}]},
        {"question": "q", "candidates": [{**asdict(candidate()), "more": 1}]},
        {"question": " ", "candidates": [asdict(candidate())]},
    ],
)
def test_a_line_that_is_no_entry_is_refused(line: Any) -> None:
    with pytest.raises(ValueError, match="expected a question with its candidates"):
        from_line(line)


def test_finite_numbers_alone_are_scores() -> None:
    assert all(map(is_score, [1, -0.5, np.float32(0.5), np.int64(3), np.array(0.5)]))
    others = [None, True, np.bool_(True), "1", b"1", [1.0], 1j, np.array([0.5, 1.0]), 10**400]
    others += [float("nan"), -float("inf"), np.float64("nan")]
    assert not any(map(is_score, others))
