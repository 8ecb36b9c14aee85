"""Test how labelled sets are read: labels, groups, and the rows that each detector gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demur import Sample
from demur.comparing import DETECTORS, EXTRA, Detector, Labelled, read_labelled
from demur.scoring import Data, ScoringError, read_fields
from support.commands import write_rows
from support.evaluators import Scripted


def _needs_contexts(sample: Sample) -> str | None:
    return None if sample.contexts else "there are no contexts"


def _detector(
    name: str, calls: int | None = 1, needs: Callable[..., Any] | None = None
) -> Detector:
    given = {} if needs is None else {"needs": needs}
    return Detector(name, "scripted", calls, lambda model: Scripted(script=lambda s: 1.0), **given)


CHEAP, EXPENSIVE = _detector("cheap"), _detector("expensive", None)
READER = _detector("reader", 2, _needs_contexts)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Labelled]:
    def do(*rows: Any, fields: tuple[str, ...] = (), given: Any = None, **options: Any) -> Labelled:
        path = write_rows(tmp_path / "rows.jsonl", rows)
        data = Data(path, path.name, read_fields(fields, EXTRA), extra=EXTRA)
        return read_labelled(data, given or {}, [CHEAP, EXPENSIVE, READER], **options)

    return do


Read = Callable[..., Labelled]


def _labels(labelled: Labelled) -> dict[str, bool]:
    return {key: label.hallucinated for key, label in labelled.labels.items()}


def _asked(labelled: Labelled, detector: Detector) -> list[str]:
    keys = [row.key(name) for row in labelled.data.rows() for name in row.samples]
    return [key for key in keys if labelled.wants(key, detector)]


def test_a_label_is_true_or_false_or_missing(read: Read) -> None:
    values = [True, False, 1, 0, "yes", "No", None, ""]
    rows = [{"id": at, "answer": "a", "hallucinated": value} for at, value in enumerate(values)]
    labelled = read(*rows, {"id": "none", "answer": "a"})
    expected = {"0": True, "1": False, "2": True, "3": False, "4": True, "5": False}
    assert _labels(labelled) == expected
    assert labelled.unlabelled == 3
    assert sorted(_asked(labelled, CHEAP)) == ["0", "1", "2", "3", "4", "5"]


def test_named_answers_have_a_label_each_also_on_lines_with_one_id(read: Read) -> None:
    answers = {"good": "a", "bad": "b", "odd": "c"}
    row = {"id": "q", "answers": answers, "hallucinated": {"good": False, "bad": True}}
    labelled = read(row)
    assert _labels(labelled) == {"q:good": False, "q:bad": True}
    assert labelled.unlabelled == 1
    assert _asked(labelled, CHEAP) == ["q:good", "q:bad"]
    rows = [
        {"id": "q", "answers": {"a": "x"}, "wrong": {"a": True}},
        {"id": "q", "answers": {"b": "x"}, "wrong": {"b": False}, "contexts": ["c"]},
    ]
    labelled = read(*rows, limit=1, fields=("hallucinated=wrong",))
    assert _labels(labelled) == {"q:a": True, "q:b": False}
    assert _asked(labelled, CHEAP) == ["q:a", "q:b"]
    assert _asked(labelled, READER) == ["q:b"]


def test_labels_of_a_file_count_instead_of_the_rows_own(read: Read) -> None:
    rows = [{"id": "a", "answer": "x", "hallucinated": True}, {"id": "b", "answer": "x"}]
    labelled = read(*rows, given={"a": False, "b": True, "c": True})
    assert _labels(labelled) == {"a": False, "b": True}
    assert (labelled.unlabelled, labelled.unknown) == (0, 1)


def test_groups_are_those_of_a_field_and_else_the_rows(read: Read) -> None:
    rows = [
        {"id": "a", "answer": "x", "hallucinated": True, "doc": 7},
        {"id": "b", "answers": {"x": "x", "y": "y"}, "hallucinated": {"x": 1, "y": 0}, "doc": None},
    ]
    labelled = read(*rows, fields=("group=doc",))
    groups = {key: label.group for key, label in labelled.labels.items()}
    assert groups == {"a": "7", "b:x": "b", "b:y": "b"}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"answer": "a", "hallucinated": "maybe"}, "neither true nor false"),
        ({"answer": "a", "hallucinated": {"x": True}}, "neither true nor false"),
        ({"answers": {"x": "a"}, "hallucinated": True}, "expected an object from the names"),
        ({"answers": {"x": "a"}, "hallucinated": {"y": True}}, "no answer is called 'y'"),
        ({"answer": "a", "hallucinated": True, "group": 1.5}, "group: expected a text"),
    ],
)
def test_a_label_that_cannot_be_read_is_told_with_its_line(read: Read, row: Any, why: str) -> None:
    with pytest.raises(ScoringError, match=f"rows.jsonl, line 2: .*{why}"):
        read({"answer": "fine", "hallucinated": True}, row)
    with pytest.raises(ScoringError, match=r"none of its 2 answers has a label.*--labels"):
        read({"answer": "a"}, {"answer": "b"})


# -- choice of rows --------------------------------------------------------------------------------

ROWS = [
    # The rows are sorted by label, as in many sets. Every third has contexts.
    # The last has no label.
    *(
        {
            "id": f"r{at}",
            "answer": "a",
            "hallucinated": at < 30,
            **({} if at % 3 else {"contexts": ["c"]}),
        }
        for at in range(60)
    ),
    {"id": "none", "answer": "a", "contexts": ["c"]},
]


def test_rows_are_drawn_whatever_the_order_of_the_file(read: Read) -> None:
    some = read(*ROWS, limit=20)
    assert len(_asked(some, CHEAP)) == len(some.labels) == 20
    assert 4 <= sum(_labels(some).values()) <= 16
    assert _labels(read(*reversed(ROWS), limit=20)) == _labels(some)


def test_a_larger_limit_takes_the_same_rows_and_more(read: Read) -> None:
    few, more = read(*ROWS, limit=10), read(*ROWS, limit=25)
    assert few.labels.keys() < more.labels.keys()
    assert len(read(*ROWS, limit=1000).labels) == 60


def test_expensive_detectors_are_asked_about_fewer_rows_of_the_same(read: Read) -> None:
    labelled = read(*ROWS, limit=20, limit_expensive=5)
    assert len(_asked(labelled, CHEAP)) == 20
    few = _asked(labelled, EXPENSIVE)
    assert len(few) == 5
    assert set(few) < set(_asked(labelled, CHEAP))
    assert [DETECTORS[name].expensive for name in ("refchecker-triplets-joint", "lm-vs-lm")] == [
        False,
        True,
    ]


def test_a_detector_is_asked_about_rows_that_have_what_it_needs(read: Read) -> None:
    labelled = read(*ROWS)
    assert set(_asked(labelled, READER)) == {f"r{at}" for at in range(0, 60, 3)}
    assert labelled.lacks(READER) is None
    without = read(*(row for row in ROWS[:-1] if "contexts" not in row), ROWS[-1])
    assert without.lacks(READER) == "there are no contexts"
    assert without.lacks(CHEAP) is None
    assert _asked(without, READER) == []
