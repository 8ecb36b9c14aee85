"""Read haltt4llm: multiple-choice questions with a right option, and what models answered.

Two forms are read: the publisher's question files with the test results beside them, and JSON lines
with id, set, question, options, correct and recorded. The results list only the replies that were
not correct: a question that they do not list was answered correctly.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows, text
from demur_research.datasets.rows import Answer, LabelledRow, Reading

SETS = ("hq", "fake", "nota", "truthfulqa")
"""Trivia; questions about things that do not exist; questions of which some have no right option;
the questions of TruthfulQA."""

Choice = Literal["A", "B", "C", "D", "E"]

_UNKNOWN = "I don't know"
_QUESTIONS = re.compile(r"(\w+)_trivia_questions\.json")
_RESULTS = re.compile(r"test_results_(\w+)_trivia_questions\.json_(.+)\.txt")
_WRONG = re.compile(r"\(incorrect [A-E]\.\)$")
_COUNT = re.compile(r"^(Incorrect|Unknown): (\d+)$", re.MULTILINE)


class _Option(BaseModel):
    text: str
    correct: bool
    choice: Choice


class _Question(BaseModel):
    question: str
    answers: list[_Option] = Field(min_length=2)


class _Outcome(BaseModel):
    outcome: Literal["correct", "incorrect", "unknown"]
    text: str | None = None


class _Line(BaseModel):
    id: str
    set: str
    question: str
    options: dict[Choice, str] = Field(min_length=2)
    correct: Choice
    recorded: dict[str, _Outcome] = Field(default_factory=dict)


def _read(files: Mapping[str, Path]) -> Reading:
    lines = list(_lines([*files.values()]))
    asked = Counter(line.question.strip().lower() for line in lines)
    kept = {"question twice": sum(times - 1 for times in asked.values())}
    return Reading(tuple(map(_row, lines)), kept=kept)


def _lines(paths: Sequence[Path]) -> Iterator[_Line]:
    results: dict[str, list[tuple[str, Path]]] = defaultdict(list)
    for path in paths:
        if match := _RESULTS.fullmatch(path.name):
            results[match[1]].append((match[2], path))
    for path in paths:
        if path.suffix == ".jsonl":
            lines = rows(load(path), _Line, str(path))
            for at, line in enumerate(lines, start=1):
                if line.correct not in line.options:
                    raise ValueError(f"{path}: row {at}, correct: it is none of the options")
            yield from lines
        elif match := _QUESTIONS.fullmatch(path.name):
            yield from _of_publisher(path, match[1], results[match[1]])
        elif not _RESULTS.fullmatch(path.name):
            raise ValueError(
                f"{path}: expected a name such as hq_trivia_questions.json, by which the set is "
                "known, or JSON lines in a file whose name ends in .jsonl"
            )


def _of_publisher(path: Path, of_set: str, results: Sequence[tuple[str, Path]]) -> Iterator[_Line]:
    asked = rows(load(path), _Question, str(path))
    recorded = {model: _outcomes(result, asked) for model, result in results}
    for at, one in enumerate(asked):
        right = [option.choice for option in one.answers if option.correct]
        if len(right) != 1 or len({option.choice for option in one.answers}) < len(one.answers):
            raise ValueError(f"{path}: row {at + 1}, answers: expected one that is correct")
        yield _Line(
            id=f"{of_set}-{at:04}",
            set=of_set,
            question=one.question,
            options={option.choice: option.text for option in one.answers},
            correct=right[0],
            recorded={model: found[at] for model, found in recorded.items()},
        )


def _outcomes(path: Path, asked: Sequence[_Question]) -> list[_Outcome]:
    """Return how a model did on each question, by the file of replies that were not correct."""
    told = text(path)
    heads = {}
    for at, one in enumerate(asked):
        options = [f"    {option.choice}. {option.text}" for option in one.answers]
        printed = "\n".join([one.question, *options]).strip()
        head = f"\nQuestion {at + 1}: {printed}\n"
        if (start := told.find(head)) >= 0:
            heads[start] = at, start + len(head)
    outcomes = [_Outcome(outcome="correct")] * len(asked)
    starts = sorted(heads)
    for start, until in zip(starts, [*starts[1:], len(told)], strict=True):
        at, end = heads[start]
        reply = _COUNT.sub("", told[end:until]).strip()
        if reply.endswith("(uncertain)"):
            kind, reply = "unknown", reply.removesuffix("(uncertain)")
        elif _WRONG.search(reply):
            kind, reply = "incorrect", _WRONG.sub("", reply)
        else:
            raise ValueError(f"{path}: question {at + 1} does not end with its outcome")
        outcomes[at] = _Outcome.model_validate({"outcome": kind, "text": reply.strip()})
    counted = Counter(one.outcome.capitalize() for one in outcomes)
    for kind, count in _COUNT.findall(told):
        if counted[kind] != int(count):
            raise ValueError(
                f"{path}: it is of other questions: it counts {count} {kind.lower()} replies, but "
                f"{counted[kind]} were found for the questions beside it"
            )
    return outcomes


def _row(line: _Line) -> LabelledRow:
    told: dict[str, Any] = {
        "set": line.set,
        "correct": line.correct,
        "recorded": {model: outcome.model_dump() for model, outcome in line.recorded.items()},
    }
    answers = (_answer(choice, text, line.correct) for choice, text in line.options.items())
    return LabelledRow(line.id, line.question, tuple(answers), metadata=told)


def _answer(choice: str, said: str, correct: str) -> Answer:
    if choice == correct:
        return Answer(said, False, choice, "correct")
    # "I don't know" makes nothing up, and the publisher counts it separately.
    if said.strip() == _UNKNOWN:
        return Answer(said, None, choice, "unknown")
    return Answer(said, True, choice, "incorrect")


_FROM = (
    "https://raw.githubusercontent.com/manyoso/haltt4llm/e1f9220452bd9e80431c5e4ce2f69d719589154f"
)


def _tested(of_set: str) -> tuple[str, ...]:
    llama = "llama-4bit" if of_set == "truthfulqa" else "llama-7b-hf-4bit"
    return ("text-davinci-003", "text-davinci-002", "alpaca-lora-4bit", "gpt4all-4bit", llama)


def _files() -> Iterator[File]:
    for of_set in SETS:
        questions = f"{of_set}_trivia_questions.json"
        yield File(f"haltt4llm/{questions}", f"{_FROM}/{questions}")
        for model in _tested(of_set):
            results = f"results/test_results_{questions}_{model}.txt"
            yield File(f"haltt4llm/{results}", f"{_FROM}/{results}", needed=False)


DATA_SET = DataSet(
    name="haltt4llm",
    title="haltt4llm",
    home="https://github.com/manyoso/haltt4llm",
    licence="MIT; the hq questions are of a set without a licence: not to be passed on",
    files=tuple(_files()),
    other_forms=("haltt4llm/haltt4llm.jsonl",),
    published_rows=2719,
    level="answer",
    shows="Whether a score ranks the right option first, and models as their answers do.",
    cannot_show=(
        "What is known against where it stands: the right option is always A in the truthfulqa "
        "questions, E in fake, D in nota. A reply that recites all options was graded correct."
    ),
    read=_read,
    traps={"question twice": "A question occurs again, with the same options or with others."},
    read_here=False,
)
