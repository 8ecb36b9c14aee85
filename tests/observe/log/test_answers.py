"""Test first answers with what evaluators and people say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur.observe.log import answered, open_log
from support.logs import RUNS, judgements
from support.records import found, jsonl, nothing_to_check, scored, undetermined


def _answered(path: Path, *runs: Any, **options: Any) -> list[Any]:
    with open_log(jsonl(path / "log.jsonl", runs)) as log:
        return [*answered(log, **options)]


def test_it_is_about_the_first_answer_of_each_run(tmp_path: Path) -> None:
    told = _answered(tmp_path, *RUNS)
    assert [one.record.id for one in told] == [run.id for run in RUNS]
    for one, run in zip(told, RUNS, strict=True):
        said = [(judged.name, judged.finding, judged.score) for judged in one.judged]
        expected = judgements(run.attempts[0])
        assert said == [(each.evaluator, each.finding, each.score) for each in expected]
        assert one.hallucinated is None


def test_sentences_count_as_one_answer(tmp_path: Path) -> None:
    parts = (found(score=0.9), nothing_to_check(), found(score=0.7), found("FEWL", 0.1, None))
    (one,) = _answered(tmp_path, scored(*parts))
    assert [(each.name, each.finding, each.score) for each in one.judged] == [
        ("RefChecker", "passed", 0.7),
        ("FEWL", "scored", 0.1),
    ]
    (one,) = _answered(tmp_path, scored(found(score=0.9), undetermined()))
    assert one.judged[0].finding == "undetermined"


def test_fingerprints_come_along(tmp_path: Path) -> None:
    (one,) = _answered(tmp_path, scored(found(fingerprints={"model": "a"}), found("other")))
    assert [each.fingerprints for each in one.judged] == [{"model": "a"}, {}]
    parts = (undetermined(), found(fingerprints={"model": "a"}), undetermined())
    (one,) = _answered(tmp_path, scored(*parts))
    assert [each.fingerprints for each in one.judged] == [{"model": "a"}]


@pytest.mark.parametrize(
    ("metadata", "label"),
    [
        *(({"hallucinated": True}, True), ({"hallucinated": False}, False), ({}, None)),
        *(({"hallucinated": other}, None) for other in ("true", 1, None)),
    ],
)
def test_the_label_in_the_metadata(
    tmp_path: Path, metadata: dict[str, Any], label: bool | None
) -> None:
    run = scored(metadata=metadata)
    assert _answered(tmp_path, run)[0].hallucinated is label
    assert _answered(tmp_path, run, labels={"another": True})[0].hallucinated is label
    assert _answered(tmp_path, run, labels={run.id: True})[0].hallucinated is True


def test_namesakes_are_told_from_sentences(tmp_path: Path) -> None:
    same = {"fingerprints": {"model": "a"}}
    parts = (found(**same), undetermined(), found(score=0.2, **same))
    (one,) = _answered(tmp_path, scored(*parts))
    assert [(len(each.parts), each.namesakes) for each in one.judged] == [(3, False)]
    parts = (found(**same), found(fingerprints={"model": "b"}), found("other"))
    (one,) = _answered(tmp_path, scored(*parts))
    assert [(len(each.parts), each.namesakes) for each in one.judged] == [(2, True), (1, False)]
