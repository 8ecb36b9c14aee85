"""Test first answers with what evaluators and people say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur.observe.log import answered, delivered, open_log
from support.logs import RUNS, judgements
from support.records import (
    found,
    guarded,
    jsonl,
    nothing_to_check,
    refuted,
    scored,
    undetermined,
)


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


_TWICE = (refuted(), found())


@pytest.mark.parametrize(
    ("evaluations", "outcome", "hallucinated", "later", "alone", "with_guard"),
    [
        ((found(),), "passed", False, None, "right", "right"),
        ((found(),), "passed", True, None, "wrong", "wrong"),
        ((refuted(),), "abstained", True, None, "wrong", "refused_wrong"),
        (_TWICE, "blocked", False, None, "right", "refused_right"),
        (_TWICE, "recovered", True, False, "wrong", "right"),
        (_TWICE, "trimmed", True, True, "wrong", "wrong"),
        (_TWICE, "recovered", True, None, "wrong", "not_labelled"),
        ((nothing_to_check(),), "nothing_to_check", False, None, *["nothing_to_check"] * 2),
        ((undetermined(),), "evaluator_failed", False, None, "right", "evaluator_failed"),
        ((refuted(),), "best_effort", True, None, "wrong", "wrong"),
        # Either attempt may have been the best one.
        (_TWICE, "best_effort", True, False, "wrong", "not_labelled"),
    ],
)
def test_what_users_got_with_a_guard_and_would_have_got_without_it(
    tmp_path: Path,
    evaluations: Any,
    outcome: Any,
    hallucinated: bool,
    later: bool | None,
    alone: str,
    with_guard: str,
) -> None:
    run = guarded(*evaluations, outcome=outcome)
    labels = {} if later is None else {(run.id, 2): later}
    told = _answered(tmp_path, run, labels={run.id: hallucinated})
    got = delivered(told, labels)
    assert {name: [fate for fate in of if of[fate]] for name, of in got.items()} == {
        "without the guard": [alone],
        "with the guard": [with_guard],
    }
    assert {sum(of.values()) for of in got.values()} == {1}


def test_only_guards_calls_with_a_label_count_among_what_users_got(tmp_path: Path) -> None:
    runs = [guarded(), scored(metadata={"hallucinated": True}, at=1)]
    for of in delivered(_answered(tmp_path, *runs), {}).values():
        assert not sum(of.values())
