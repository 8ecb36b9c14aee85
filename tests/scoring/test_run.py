"""Test runs: every answer is scored once, however a run ends, and no finding is lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from demur import DemurError, Evaluation, Sample
from demur.scoring import Data, Note, Progress, Run, Scorers, ScoringError, read_lines, read_results
from support.evaluators import Scripted, undetermined
from support.scoring import findings, keys, length, rows, run_on
from support.waiting import PATIENCE
from support.words import KEY


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return rows(tmp_path / "rows.jsonl", 20)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "scores.jsonl"


def test_a_line_for_each_answer_and_evaluator(tmp_path: Path, out: Path) -> None:
    data = rows(tmp_path / "rows.jsonl", 5, answers=3)
    evaluators = {
        "len": Scripted(script=length),
        "half": Scripted(script=lambda sample: length(sample) / 2),
    }
    seen: list[Progress] = []
    run_on(data, out, evaluators, do=lambda run: run.score(seen.append))
    assert keys(out) == {
        (f"q{row}:n{name}", evaluator): 1
        for row in range(5)
        for name in range(3)
        for evaluator in evaluators
    }
    samples = {row.key(name): s for row in data.rows() for name, s in row.samples.items()}
    for line in findings(out):
        evaluation = Evaluation.model_validate(line["evaluation"])
        share = 1 if line["evaluator"] == "len" else 0.5
        assert evaluation.score == pytest.approx(share * length(samples[line["key"]]))
        assert line["key"] == f"{line['row']}:{line['answer']}"
    assert [now.done for now in seen] == [*range(31)]
    assert {now.total for now in seen} == {30}
    before = out.read_bytes()
    again = Scripted(script=length)
    run_on(data, out, {"len": again})  # A second run asks for nothing.
    assert again.asked == []
    assert out.read_bytes() == before
    another = Scripted(script=length)
    assert run_on(data, out, {"more": another}, do=lambda run: (run.done, run.score())[0]) == 0
    assert len(another.asked) == 15


def test_no_credential_is_written(data: Data, out: Path) -> None:
    def script(sample: Sample) -> Evaluation | Exception:
        if sample.answer.endswith("0"):
            return PermissionError(f"Incorrect API key provided: {KEY}")
        why = f"the endpoint refuses the key {KEY}"
        return Evaluation(name="s", error=why, explanation=why, details={"reply": {"text": why}})

    run_on(data, out, {"s": Scripted(script=script)})
    assert len(findings(out)) == 20
    assert KEY not in out.read_text()
    for line in findings(out):
        found = Evaluation.model_validate(line["evaluation"])
        assert "[secret]" in str(found.error)


def test_a_larger_limit_goes_on(data: Data, out: Path) -> None:
    def limited(limit: int | None) -> Data:
        return Data(data.path, data.name, limit=limit)

    run_on(limited(5), out)
    assert run_on(limited(5), out, do=lambda run: (run.done, run.total)) == (5, 5)
    assert run_on(limited(None), out, do=lambda run: (run.done, run.total)) == (5, 20)
    run_on(limited(None), out)
    assert len(keys(out)) == 20
    assert run_on(limited(5), out, do=lambda run: (run.done, run.total)) == (5, 5)


def test_no_more_rows_than_told_are_under_way(tmp_path: Path, out: Path) -> None:
    lock, now, most = threading.Lock(), 0, 0
    full = threading.Barrier(4)

    def script(sample: Sample) -> float:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        # Four rows are under way. A fifth would be counted before the next four.
        full.wait(timeout=PATIENCE)
        with lock:
            now -= 1
        return 1.0

    run_on(rows(tmp_path / "rows.jsonl", 16), out, {"len": Scripted(script=script)})
    assert most == 4


# -- endings ---------------------------------------------------------------------------------------


def test_an_interrupt_keeps_what_was_found_and_waits_for_nothing(data: Data, out: Path) -> None:
    never = threading.Event()

    def script(sample: Sample) -> float:
        if sample.answer.startswith(("answer 7 ", "answer 8 ")):
            never.wait()
        return length(sample)

    def interrupt(now: Progress) -> None:
        if now.done == 10:
            raise KeyboardInterrupt

    first = Scripted(script=script)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_on(data, out, {"len": first}, do=lambda run: run.score(interrupt))
        found = keys(out)
        assert len(found) >= 10
        second = Scripted(script=length)
        run_on(data, out, {"len": second})
    finally:
        never.set()
    assert keys(out) == {(f"q{row}", "len"): 1 for row in range(20)}
    assert len(second.asked) == 20 - len(found)


def test_an_error_of_demur_ends_the_run_and_keeps_what_was_found(data: Data, out: Path) -> None:
    def script(sample: Sample) -> float | Exception:
        gone = sample.answer.startswith("answer 9 ")
        return DemurError("the model is gone") if gone else length(sample)

    with pytest.raises(DemurError, match="the model is gone"):
        run_on(data, out, {"len": Scripted(script=script)})
    found = keys(out)
    assert 6 <= len(found) < 20
    second = Scripted(script=length)
    run_on(data, out, {"len": second})
    assert keys(out) == {(f"q{row}", "len"): 1 for row in range(20)}
    assert len(second.asked) == 20 - len(found)


def test_an_evaluator_that_breaks_on_one_answer_decides_nothing_of_it(
    data: Data, out: Path
) -> None:
    def script(sample: Sample) -> float | Exception:
        broken = sample.answer.startswith("answer 9 ")
        return ZeroDivisionError("by zero") if broken else length(sample)

    run_on(data, out, {"len": Scripted(script=script)})
    errors = {line["key"]: line["evaluation"]["error"] for line in findings(out)}
    assert len(errors) == 20
    assert {key for key, error in errors.items() if error} == {"q9"}
    assert errors["q9"] == "a fault of the evaluator: ZeroDivisionError: by zero"


def test_what_is_undetermined_is_scored_again_only_when_asked(data: Data, out: Path) -> None:
    def script(sample: Sample) -> float | Evaluation:
        return undetermined("no reply") if "answer 1" in sample.answer else length(sample)

    run_on(data, out, {"len": Scripted(script=script)})
    held = {line["key"]: line for line in findings(out)}
    assert sum(line["evaluation"]["error"] == "no reply" for line in held.values()) == 11
    same = Scripted(script=length)
    run_on(data, out, {"len": same})
    assert same.asked == []
    again = Scripted(script=length)
    run_on(data, out, {"len": again}, retry=True)
    assert len(again.asked) == 11
    assert keys(out) == {(f"q{row}", "len"): 1 for row in range(20)}
    now = {line["key"]: line for line in findings(out)}
    assert all(
        now[key] == line for key, line in held.items() if line["evaluation"]["error"] is None
    )
    assert not any(line["evaluation"]["error"] for line in now.values())


def test_notes_stay_where_they_are_and_are_nobodys_findings(data: Data, out: Path) -> None:
    note = {"answer": "q0", "of": ["any", "JSON"]}

    def score(run: Run) -> None:
        run.results.append({"note": note})
        run.score()

    lost = Scripted(script=lambda sample: undetermined("why"))
    run_on(data, out, {"len": lost}, do=score)
    again = Scripted(script=length)
    run_on(data, out, {"len": again}, retry=True)
    assert len(again.asked) == 20
    held = [*read_lines(out)]
    assert [one.value for one in held if isinstance(one, Note)] == [note]
    assert len([*read_results(out)]) == len(held) - 1 == 20


def test_a_retry_forgets_nothing_that_it_does_not_score_again(data: Data, out: Path) -> None:
    lost = {name: Scripted(script=lambda sample: undetermined("why")) for name in ("one", "two")}
    run_on(data, out, lost)
    again = Scripted(script=length)
    run_on(data, out, {"one": again}, retry=True, wants=lambda key, _: key in ("q1", "q2"))
    assert len(again.asked) == 2
    undecided = [found for found in read_results(out) if found.evaluation.undetermined]
    assert len(undecided) == 38
    assert keys(out) == {(f"q{row}", name): 1 for row in range(20) for name in lost}


# -- rows from other sources -----------------------------------------------------------------------


def _given(rows: list[dict[str, object]]) -> Data:
    """Return rows that come in another order each time they are read."""
    order = list(rows)

    def source() -> list[bytes]:
        order.append(order.pop(0))
        return [json.dumps(row).encode() for row in order]

    return Data(None, "the rows", source=source)


def test_rows_without_order_are_known_by_what_they_hold(out: Path) -> None:
    held: list[dict[str, object]] = [{"question": f"Q{at}", "answer": "x" * at} for at in range(9)]
    run_on(_given(held), out)
    first = keys(out)
    assert len(first) == 9
    again = Scripted(script=length)
    run_on(_given(held[::-1]), out, {"len": again})
    assert again.asked == []
    assert keys(out) == first
    with pytest.raises(ScoringError, match="the rows with other content"):
        run_on(_given(held[1:]), out)
    with pytest.raises(ScoringError, match=r"the rows, row 10: id: '\w{24}' is on row \d already"):
        run_on(_given([*held, held[0]]), out)


def test_rows_that_are_others_the_second_time_are_not_scored_and_told(out: Path) -> None:
    times = iter([range(6), range(2, 9)])

    def source() -> list[bytes]:
        return [json.dumps({"id": at, "answer": "x" * at}).encode() for at in next(times)]

    with pytest.raises(DemurError, match="2 answers of the rows were missing when it was read"):
        run_on(Data(None, "the rows", source=source), out)
    assert {key for key, _ in keys(out)} == {"2", "3", "4", "5"}


def test_what_leaves_a_process_that_scores_for_another_holds_no_credential(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(sample: Sample) -> Evaluation | Exception:
        if sample.answer == "gone":
            return DemurError("the model is gone")
        return PermissionError(f"Incorrect API key provided: {KEY}")

    scorers = Scorers({"s": Scripted(script=script)})
    found = scorers.score("s", Sample(answer="a"))
    assert found.undetermined
    assert KEY not in found.model_dump_json()
    assert "[secret]" in str(found.error)
    with pytest.raises(DemurError, match="the model is gone"):
        scorers.score("s", Sample(answer="gone"))
