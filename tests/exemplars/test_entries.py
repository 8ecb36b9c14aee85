"""What is kept of a question, in Chroma's metadata and in a file's lines."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur._text import replace_surrogates
from demur.exemplars import Candidate, Entry
from demur.exemplars.entries import (
    as_line,
    candidate_key,
    from_line,
    from_metadata,
    is_score,
    keys_of,
    to_metadata,
    without,
)

NOW = "2026-11-22T10:00:00+00:00"
WHOLE = st.characters(exclude_categories=["Cs"])
"""Any character that an encoding carries."""
TEXTS = st.text(WHOLE, min_size=1).filter(str.strip)
CANDIDATES = st.builds(
    Candidate,
    answer=TEXTS,
    score=st.floats(allow_nan=False, allow_infinity=False),
    scorer=st.sampled_from(["given", "abc", "def"]),
    scored_at=st.sampled_from([NOW, "2025-01-01T00:00:00+02:00"]),
    source=st.none() | st.text(WHOLE),
    parts=st.dictionaries(st.text(WHOLE), st.none() | st.lists(st.floats(-1, 1))),
)
ENTRIES = st.lists(CANDIDATES, min_size=1, max_size=5, unique_by=lambda one: one.answer)


def candidate(answer: str = "a", score: float = 1.0, scorer: str = "given") -> Candidate:
    return Candidate(answer, score, scorer, NOW)


@given(TEXTS, ENTRIES, st.sampled_from(["given", "abc", None]))
def test_metadata_hold_a_question_with_its_candidates(
    question: str, candidates: list[Candidate], scorer: str | None
) -> None:
    by_key = {candidate_key(one.answer): one for one in candidates}
    metadata = to_metadata(question, by_key, "w", {})
    assert len(metadata) == 2  # however many candidates there are
    assert all(isinstance(text, str) for text in metadata.values())
    assert keys_of(metadata) == by_key.keys()
    found, others = from_metadata(metadata, scorer)
    assert others == any(one.scorer != scorer for one in candidates)
    assert found.question == question
    assert all(one.scorer == scorer for one in found.candidates)
    assert not any(one.scorer == scorer for one in found.stale)
    assert sorted(found.all, key=repr) == sorted(candidates, key=repr)
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert found.best == (found.candidates[0] if found.candidates else None)


@given(TEXTS, ENTRIES, st.randoms())
def test_the_order_is_that_of_the_scores_whatever_came_first(
    question: str, candidates: list[Candidate], chance: Any
) -> None:
    equal = [replace(one, score=chance.choice([0.0, 1.0])) for one in candidates]
    by_key = {candidate_key(one.answer): one for one in equal}
    shuffled = list(by_key.items())
    chance.shuffle(shuffled)
    first = from_metadata(to_metadata(question, by_key, "w", {}), "given")
    assert from_metadata(to_metadata(question, dict(shuffled), "w", {}), "given") == first


@given(
    st.lists(
        st.tuples(st.sampled_from("vwx"), st.sampled_from("abc"), st.integers(0, 3)), max_size=20
    ),
    st.sampled_from(["given", "other"]),
)
def test_writers_take_nothing_from_each_other_and_the_latest_of_a_candidate_counts(
    written: list[tuple[str, str, int]], scorer: str
) -> None:
    """Each in its turn writes an answer with a score; the scorer changes from time to time."""
    metadata: dict[str, Any] = {"question": "q"}
    expected: dict[str, Candidate] = {}
    for at, (writer, answer, score) in enumerate(written):
        by = "other" if at % 3 == 2 else "given"
        one = Candidate(answer, score, by, f"2026-11-22T10:00:{at:02}.000000+00:00")
        metadata |= to_metadata("q", {candidate_key(answer): one}, writer, metadata)
        expected[f"{writer} {answer}"] = one  # in the place of what the same writer put there
    found, others = from_metadata(metadata, scorer)
    foreign = False
    for answer in "abc":
        mine = [one for key, one in expected.items() if key.endswith(f" {answer}")]
        foreign |= bool(mine) and max(mine, key=lambda one: one.scored_at).scorer != scorer
        best = max(mine, key=lambda one: (one.scorer == scorer, one.scored_at), default=None)
        assert [one for one in found.all if one.answer == answer] == ([best] if best else [])
    assert others is foreign


@given(
    st.lists(st.tuples(st.sampled_from("vwx"), st.sampled_from("abc"))),
    st.sets(st.sampled_from("abc")),
)
def test_what_is_taken_out_is_gone_whoever_wrote_it(
    written: list[tuple[str, str]], doomed: set[str]
) -> None:
    metadata: dict[str, Any] = {"question": "q"}
    for writer, answer in written:
        one = {candidate_key(answer): candidate(answer)}
        metadata |= to_metadata("q", one, writer, metadata)
    changed = without(metadata, {candidate_key(answer) for answer in doomed})
    left = {name: text for name, text in {**metadata, **changed}.items() if text is not None}
    assert keys_of(left) == {candidate_key(answer) for _, answer in written if answer not in doomed}
    assert without(left, {candidate_key(answer) for answer in doomed}) == {}


@given(TEXTS, ENTRIES)
def test_a_line_holds_an_entry(question: str, candidates: list[Candidate]) -> None:
    line = json.loads(json.dumps(as_line(Entry(question, tuple(candidates)))))
    assert from_line(line) == (question, {candidate_key(one.answer): one for one in candidates})


@given(st.text())
def test_an_answer_has_one_key_with_lone_surrogates_or_without(answer: str) -> None:
    assert candidate_key(answer) == candidate_key(replace_surrogates(answer))
    assert candidate_key(answer) != candidate_key(answer + "x")


def test_lone_surrogates_are_replaced() -> None:
    answer = candidate("so \ud800")
    metadata = to_metadata("why \udfff?", {candidate_key(answer.answer): answer}, "w", {})
    found, _ = from_metadata(metadata, "given")
    assert (found.question, found.candidates[0].answer) == ("why \ufffd?", "so \ufffd")


# --- What is none ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"answer": " "}, "expected a text as answer, got ' '"),
        ({"answer": 7}, "expected a text as answer, got 7"),
        ({"score": None}, "expected a finite number as score, got None"),
        ({"score": "0.5"}, "expected a finite number as score, got '0.5'"),
        ({"score": float("nan")}, "expected a finite number as score, got nan"),
        ({"score": True}, "expected a finite number as score, got True"),
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
        Candidate(**told)
    with pytest.raises(ValueError, match=message):
        from_line({"question": "q", "candidates": [told]})
    with pytest.raises(ValueError, match=message):
        from_metadata({"question": "q", "candidates-w": json.dumps({"a": told})}, "given")


@pytest.mark.parametrize(
    "line",
    [
        None,
        [],
        "question",
        {},
        {"question": "q"},
        {"question": "q", "candidates": None},
        {"question": "q", "candidates": []},
        {"question": "q", "candidates": "a"},
        {"question": "q", "candidates": [{"answer": "a"}]},
        {"question": "q", "candidates": [{**asdict(candidate()), "more": 1}]},
        {"question": " ", "candidates": [asdict(candidate())]},
        {"question": None, "candidates": [asdict(candidate())]},
    ],
)
def test_a_line_that_is_no_entry_is_refused(line: Any) -> None:
    with pytest.raises(ValueError, match="expected a question with its candidates"):
        from_line(line)


@pytest.mark.parametrize("score", [1, -0.5, np.float32(0.5), np.int64(3), np.array(0.5)])
def test_a_number_is_a_score(score: object) -> None:
    assert is_score(score)


@pytest.mark.parametrize(
    "score",
    [
        *(None, True, np.bool_(True), "1", b"1", [1.0], 1j, object()),
        *(float("nan"), float("inf"), -float("inf"), np.float64("nan"), 10**400),
        np.array([0.5, 1.0]),
    ],
)
def test_nothing_else_is_a_score(score: object) -> None:
    assert not is_score(score)
