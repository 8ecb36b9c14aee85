"""Test haltt4llm's questions together with its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data_sets import reading
from publishers import dump

TEXTS = ["Iron", "Wood", "Sand", "None of the above", "I don't know"]


def _question(text: str, right: str) -> dict[str, Any]:
    options = zip(TEXTS, "ABCDE", strict=True)
    answers = [{"text": said, "correct": at == right, "choice": at} for said, at in options]
    return {"question": text, "answers": answers}


def _asked(number: int, text: str) -> str:
    options = "\n".join(f"    {at}. {said}" for said, at in zip(TEXTS, "ABCDE", strict=True))
    return f"Question {number}: {text}\n{options}"


QUESTIONS = [_question("What rusts?", "A"), _question("What sinks?", "B"), _question("Who?", "E")]
RESULTS = "\n".join(
    [
        *("Total score: 3 of 6", "", "Incorrect: 1", _asked(1, "What rusts?")),
        *("Question 2: it says,", "B. Wood (incorrect A.)", ""),
        *("Unknown: 1", _asked(2, "What sinks?"), "I don't know. (uncertain)", "", ""),
    ]
)


def _published(folder: Path, results: str = RESULTS) -> Path:
    for of_set in ("fake", "nota", "truthfulqa"):
        dump(folder / f"{of_set}_trivia_questions.json", [_question(f"{of_set}?", "D")])
    dump(folder / "hq_trivia_questions.json", QUESTIONS)
    (folder / "results").mkdir()
    name = "test_results_hq_trivia_questions.json_gpt4all-4bit.txt"
    (folder / "results" / name).write_text(results, encoding="utf-8")
    return folder


def test_the_right_option_is_no_hallucination_and_not_to_know_has_no_label(tmp_path: Path) -> None:
    found = reading("haltt4llm", _published(tmp_path))
    labels = [{one.name: one.hallucinated for one in row.answers} for row in found.rows[:3]]
    assert labels == [
        {"A": False, "B": True, "C": True, "D": True, "E": None},
        {"A": True, "B": False, "C": True, "D": True, "E": None},
        {"A": True, "B": True, "C": True, "D": True, "E": False},
    ]
    assert [row.key for row in found][:4] == ["hq-0000", "hq-0001", "hq-0002", "fake-0000"]
    assert [row.metadata["correct"] for row in found][:4] == ["A", "B", "E", "D"]


def test_results_are_joined_to_their_questions_and_what_they_lack_is_correct(
    tmp_path: Path,
) -> None:
    found = reading("haltt4llm", _published(tmp_path))
    assert [row.metadata["recorded"] for row in found] == [
        {"gpt4all-4bit": {"outcome": "incorrect", "text": "Question 2: it says,\nB. Wood"}},
        {"gpt4all-4bit": {"outcome": "unknown", "text": "I don't know."}},
        {"gpt4all-4bit": {"outcome": "correct", "text": None}},
        *({}, {}, {}),
    ]
    assert len(found.missing) == 19


def test_results_of_other_questions_are_refused(tmp_path: Path) -> None:
    results = RESULTS.replace("What sinks?", "What swims?")
    with pytest.raises(ValueError, match="it is of other questions: "):
        reading("haltt4llm", _published(tmp_path, results))
