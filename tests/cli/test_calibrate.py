"""Test `demur calibrate`: what it reads, chooses, says and refuses."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demur import Evaluation, Sample, Threshold, cli
from demur.calibration import best_f1, calibrate, percentile
from demur.guard import Trace
from demur.observe import Record
from demur.observe.log import open_log
from support import records
from support.evaluators import Scripted
from support.records import HOSTILE, found, guarded, jsonl, refuted, sqlite, undetermined
from support.scoring import rows, run_on

PRINTS = {"evaluator": "RefChecker", "model": "gpt"}


def judged(score: float, name: str = "RefChecker", **prints: str) -> Evaluation:
    return found(name, score, score >= 0.5, fingerprints=prints or PRINTS)


def nothing_to_check() -> Evaluation:
    return records.nothing_to_check().model_copy(update={"fingerprints": PRINTS})


def scored(*evaluations: Evaluation, at: float = 0, **fields: Any) -> Record:
    """Return a run; different values of `at` give different answers."""
    return records.scored(*evaluations, at=at, **{"answer": f"It is {at} m high.", **fields})


@dataclass
class Case:
    """Hold answers with scores and labels, and the runs that they belong to."""

    scores: list[float]
    labels: list[bool]
    runs: list[Record]

    def ids(self) -> list[str]:
        return [run.id for run in self.runs]


def _case(count: int = 200, labelled: bool = False, **prints: str) -> Case:
    """Return answers with scores of two digits, so that some tie; a third are hallucinated."""
    draw = random.Random(3)
    labels = [at % 3 == 0 for at in range(count)]
    scores = [round(min(1, max(0, draw.gauss(0.3 if label else 0.8, 0.2))), 2) for label in labels]
    runs = [
        scored(
            judged(score, **prints),
            at=at,
            **({"metadata": {"hallucinated": label}} if labelled else {}),
        )
        for at, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]
    return Case(scores, labels, runs)


def _labels(path: Path, labels: Mapping[str, bool]) -> Path:
    lines = "".join(f"{id},{str(label).lower()}\n" for id, label in labels.items())
    path.write_text(f"id,hallucinated\n{lines}")
    return path


def _csv(path: Path, case: Case) -> Path:
    return _labels(path, dict(zip(case.ids(), case.labels, strict=True)))


def _traces(path: Path, runs: Sequence[Record]) -> Path:
    kept = Record.model_fields.keys() & Trace.model_fields.keys()
    fields = kept - {"outcome", "reason"}
    traces = [
        Trace(outcome="passed", reason="-", **{name: getattr(run, name) for name in fields})
        for run in runs
    ]
    path.write_text(json.dumps([json.loads(one.model_dump_json()) for one in traces]))
    return path


def _run(*arguments: object) -> int:
    return cli.run(["calibrate", *map(str, arguments)])


def _expected(case: Case, target: float = 0.1, confidence: float = 0.9) -> Threshold:
    evaluations = [judged(score) for score in case.scores]
    return calibrate(evaluations, case.labels, target=target, confidence=confidence)


def _lines(out: str) -> dict[str, str]:
    """Return the printed lines by their first words."""
    return dict(line.split("  ", 1) for line in out.splitlines())


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [jsonl, sqlite], ids=["lines", "database"])
@pytest.mark.parametrize("by", ["metadata", "labels"])
def test_a_log_gives_what_calibrate_gives(
    write: Callable[..., Path], by: str, tmp_path: Path, capsys: Any
) -> None:
    case = _case(labelled=by == "metadata")
    path = write(tmp_path / "a.log", case.runs)
    options = [] if by == "metadata" else ["--labels", _csv(tmp_path / "labels.csv", case)]
    assert _run(path, "--target", 0.1, *options) == 0
    assert Threshold.load(tmp_path / "a.threshold.json") == _expected(case)
    said = _lines(capsys.readouterr().out)
    assert said["saved to"] == str(tmp_path / "a.threshold.json")
    assert "left out" not in said


@pytest.mark.slow
def test_saved_traces_are_called_by_their_number(tmp_path: Path) -> None:
    case = _case()
    path = _traces(tmp_path / "traces.json", case.runs)
    with open_log(path) as log:
        assert (log.path, log.name) == (path, str(path))
    numbered = {f"trace-{at}": label for at, label in enumerate(case.labels, start=1)}
    labels = _labels(tmp_path / "labels.csv", numbered)
    assert _run(path, "--target", 0.1, "--labels", labels) == 0
    assert Threshold.load(tmp_path / "traces.threshold.json") == _expected(case)


def test_of_a_guards_run_the_first_answer_counts(tmp_path: Path) -> None:
    runs = [
        guarded(judged(score), judged(1.0), at=at, metadata={"hallucinated": score < 0.5})
        for at, score in enumerate([0.1, 0.2, 0.6, 0.7])
    ]
    path = jsonl(tmp_path / "a.jsonl", runs)
    assert _run(path, "--percentile", 50) == 0
    assert Threshold.load(tmp_path / "a.threshold.json").value == 0.6


class Told(Scripted):
    """Give scores whose fingerprints are known."""

    @property
    def fingerprints(self) -> dict[str, str]:
        return {"evaluator": "Told", "model": "gpt"}


def _results(tmp_path: Path, scores: Sequence[float], **evaluators: Any) -> Path:
    """Write results of `demur score` for rows q0, q1 and so on."""
    data, out = rows(tmp_path / "rows.jsonl", len(scores)), tmp_path / "rows.scores.jsonl"

    def script(sample: Sample) -> float:
        return scores[int(sample.answer.split()[1])]

    run_on(data, out, evaluators or {"config": Told(script=script, name="Told")})
    return out


def test_results_of_demur_score_are_labelled_by_key(tmp_path: Path, capsys: Any) -> None:
    case = _case(60)
    path = _results(tmp_path, case.scores)
    labels = _labels(
        tmp_path / "labels.csv", {f"q{at}": label for at, label in enumerate(case.labels)}
    )
    before = path.read_bytes()
    assert _run(path, "--target", 0.2, "--labels", labels) == 0
    chosen = Threshold.load(tmp_path / "rows.scores.threshold.json")
    assert chosen.model_dump() == {
        **_expected(case, 0.2).model_dump(),
        "evaluator": "Scripted",
        "fingerprints": {"evaluator": "Told", "model": "gpt"},
    }
    said = _lines(capsys.readouterr().out)
    assert said["use"].startswith("Told(..., threshold=Threshold.load(")
    assert path.read_bytes() == before


def test_of_one_answer_the_last_finding_counts(tmp_path: Path) -> None:
    path = _results(tmp_path, [0.1, 0.2, 0.3])
    again = json.loads(path.read_text().splitlines()[1])
    again["evaluation"]["score"] = 0.9
    with path.open("a") as file:
        file.write(json.dumps(again) + "\n")
        file.write(json.dumps({"spent": {"calls": 3}}) + "\n")
    assert _run(path, "--percentile", 50) == 0
    assert Threshold.load(tmp_path / "rows.scores.threshold.json").samples == 3
    best = {json.loads(line)["evaluation"]["score"] for line in path.read_text().splitlines()[2:5]}
    assert Threshold.load(tmp_path / "rows.scores.threshold.json").value in best


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda raw: raw[:-5], "line 4 is not whole"),
        (lambda raw: raw.replace(b'"evaluation"', b'"elevation"', 1), "line 2 is no finding"),
        (lambda raw: raw.replace(b'"demur_scores": 1', b'"demur_scores": 7', 1), "version (7)"),
        (lambda raw: b"nothing at all\n", "is not a log"),
    ],
)
def test_files_that_cannot_be_read_are_told(
    change: Callable[[bytes], bytes], why: str, tmp_path: Path, capsys: Any
) -> None:
    path = _results(tmp_path, [0.1, 0.2, 0.3])
    path.write_bytes(change(path.read_bytes()))
    assert _run(path, "--percentile", 50) == 2
    out, err = capsys.readouterr()
    assert why in err
    assert out == ""
    assert not (tmp_path / "rows.scores.threshold.json").exists()


def test_a_file_that_is_not_there_is_told(tmp_path: Path, capsys: Any) -> None:
    assert _run(tmp_path / "none.jsonl", "--percentile", 50) == 2
    assert "cannot read" in capsys.readouterr().err
    path = jsonl(tmp_path / "a.jsonl", _case().runs)
    assert _run(path, "--target", 0.1, "--labels", tmp_path / "none.csv") == 2
    assert "none.csv" in capsys.readouterr().err


# -- what is left out ------------------------------------------------------------------------------


def test_what_is_left_out_is_counted(tmp_path: Path, capsys: Any) -> None:
    case = _case()
    others = [
        scored(undetermined(), at=1000),
        scored(undetermined(), at=1001),
        scored(found(score=None, passed=False), at=1003),
        *(scored(judged(0.01), at=1010 + at) for at in range(5)),
    ]
    path = jsonl(tmp_path / "a.jsonl", [*case.runs, *others])
    with path.open("a") as file:
        file.write('{"id": 3}\n')
    known = dict(zip(case.ids(), case.labels, strict=True))
    said_of = {one.id: True for one in others[:3]}
    strangers = {f"x{at}": True for at in range(7)}
    labels = _labels(tmp_path / "labels.csv", {**known, **said_of, **strangers})
    assert _run(path, "--target", 0.1, "--labels", labels) == 0
    told = _lines(capsys.readouterr().out)
    assert told["left out"] == "2 undetermined, 1 without a score, 5 unlabelled"
    assert told["labels of no answer"] == "7: 'x0', 'x1', 'x2', 'x3', 'x4', ..."
    assert told["cannot be read"].startswith("1, first line 209: ")
    assert Threshold.load(tmp_path / "a.threshold.json") == _expected(case)
    assert _run(path, "--target", 0.1, "--labels", labels, "--force", "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["left_out"] == {
        "not judged": 0,
        "undetermined": 2,
        "without a score": 1,
        "unlabelled": 5,
        "damaged": 1,
    }
    assert whole["unknown_labels"] == 7
    # A percentile needs no labels.
    assert _run(path, "--percentile", 10, "--force", "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert "unlabelled" not in whole["left_out"]
    assert whole["threshold"]["samples"] == 205


# -- answers with nothing to check -----------------------------------------------------------------


def _silent(path: Path, wrong: int, right: int) -> Path:
    """Write a log with answers that state nothing: `wrong` are hallucinated, `right` are not."""
    case = _case(300, labelled=True)
    silent = [
        scored(nothing_to_check(), at=1000 + at, metadata={"hallucinated": at < wrong})
        for at in range(wrong + right)
    ]
    return jsonl(path, [*case.runs, *silent])


def test_hallucinations_that_state_nothing_are_counted_as_the_guard_treats_them(
    tmp_path: Path, capsys: Any
) -> None:
    path = _silent(tmp_path / "a.jsonl", wrong=50, right=9)  # These are the counts of the attack.
    assert _run(path, "--target", 0.05) == 2
    said = capsys.readouterr().err
    assert "50 of the 150 hallucinated answers state nothing to check" in said
    assert "--on-abstain fail" in said
    assert _run(path, "--target", 0.05, "--on-abstain", "fail") == 0
    chosen = Threshold.load(tmp_path / "a.threshold.json")
    assert chosen.on_abstain == "fail"
    assert (chosen.samples, chosen.hallucinated) == (359, 150)
    told = _lines(capsys.readouterr().out)
    assert 'pass a guard with on_abstain="fail"' in told["guaranteed"]
    assert told["chosen from"] == "359 answers, 150 of them hallucinated"
    assert told["nothing to check"] == (
        "59 answers, 50 of them hallucinated: counted as failing, so the guard has to fail them "
        '(on_abstain="fail")'
    )
    assert "left out" not in told


@pytest.mark.parametrize("way", [["--target", 0.1], ["--best-f1"], ["--percentile", 40]])
def test_every_figure_is_of_the_same_answers(
    way: list[object], tmp_path: Path, capsys: Any
) -> None:
    path = _silent(tmp_path / "a.jsonl", wrong=3, right=9)
    assert _run(path, *way) == 0
    chosen = Threshold.load(tmp_path / "a.threshold.json")
    assert (chosen.on_abstain, chosen.samples) == ("pass", 312)
    told = _lines(capsys.readouterr().out)
    labelled = chosen.hallucinated is not None
    assert told["nothing to check"].startswith(
        f"12 answers{', 3 of them hallucinated' if labelled else ''}: counted as passing"
    )
    assert told["of these pass"].startswith(f"{chosen.passed} ({chosen.passed / 312:.1%})")
    if labelled:
        assert chosen.hallucinated == 103
        assert (chosen.passed_hallucinated or 0) >= 3


def test_where_all_state_nothing_there_is_no_threshold(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(nothing_to_check(), at=at) for at in range(3)])
    assert _run(path, "--percentile", 5) == 2
    assert "no answer with a score is left of RefChecker (3 nothing to check)" in _flat(
        capsys.readouterr().err
    )


def test_claims_without_a_label_count_against_no_answer_that_passes(
    tmp_path: Path, capsys: Any
) -> None:
    case = _case(labelled=True)
    bounds = {"score_bounds": [0.9, 1.0]}
    partly = found(score=None, passed=None, error="1 claim has no label", details=bounds)
    partly = partly.model_copy(update={"fingerprints": PRINTS})
    more = [scored(partly, at=1000 + at, metadata={"hallucinated": True}) for at in range(20)]
    path = jsonl(tmp_path / "a.jsonl", [*case.runs, *more])
    assert _run(path, "--target", 0.1) == 0
    chosen = Threshold.load(tmp_path / "a.threshold.json")
    assert chosen.value > 0.9
    assert chosen.hallucinated == 87
    said = _lines(capsys.readouterr().out)["without a label"]
    assert said == "are claims of 20 answers: the lowest score that each can have counts"


def test_what_passes_without_a_score_is_refused(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(judged(0.5)), scored(found(score=None), at=1)])
    assert _run(path, "--percentile", 5) == 2
    assert "without a score, so no threshold decides what passes" in _flat(capsys.readouterr().err)


# -- repeats ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("of", ["log", "results"])
def test_repeats_are_counted_once_and_told(of: str, tmp_path: Path, capsys: Any) -> None:
    case = _case(100)
    labels, known = tmp_path / "labels.csv", {}
    if of == "log":
        runs = [
            scored(judged(score), at=1000 * again + at, answer=f"{'  ' * again}No. {at}\n")
            for again in range(3)
            for at, score in enumerate(case.scores)
        ]
        path = jsonl(tmp_path / "a.jsonl", runs)
        known = {run.id: case.labels[at % 100] for at, run in enumerate(runs)}
    else:
        path = tmp_path / "rows.scores.jsonl"
        data = rows(tmp_path / "rows.jsonl", 100)
        lines = [json.loads(line) for line in data.path.read_text().splitlines()]
        again = [{**line, "id": f"{line['id']}-{at}"} for line in lines for at in range(3)]
        data.path.write_text("".join(json.dumps(line) + "\n" for line in again))
        run_on(data, path, {"config": Told(script=lambda s: case.scores[int(s.answer.split()[1])])})
        known = {line["id"]: case.labels[int(line["answer"].split()[1])] for line in again}
    assert _run(path, "--target", 0.2, "--labels", _labels(labels, known), "--best-f1") == 64
    assert _run(path, "--target", 0.2, "--labels", labels) == 0
    chosen = Threshold.load(path.with_suffix(".threshold.json"))
    assert (chosen.samples, chosen.hallucinated) == (100, 34)
    assert chosen.value == _expected(case, 0.2).value
    told = _lines(capsys.readouterr().out)["counted once"]
    assert told == "200 answers more, which repeat others: the same text to the same question"
    assert _run(path, "--percentile", 5, "--force", "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert (whole["repeats"], whole["threshold"]["samples"]) == (200, 100)


def test_answers_without_a_text_are_not_compared(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(judged(0.5), at=at, answer="") for at in range(3)])
    assert _run(path, "--percentile", 5) == 0
    said = _lines(capsys.readouterr().out)
    assert said["not compared"].startswith("3 answers without a text in the file")
    assert "counted once" not in said


def test_an_answer_that_is_labelled_both_ways_is_named(tmp_path: Path, capsys: Any) -> None:
    case = _case(labelled=True)
    twin = scored(judged(0.1), at=999, answer="It is 3 m  high.", metadata={"hallucinated": False})
    path = jsonl(tmp_path / "a.jsonl", [*case.runs, twin])
    assert _run(path, "--target", 0.1) == 2
    said = _flat(capsys.readouterr().err)
    assert f"{case.runs[3].id!r} and {twin.id!r} are the same answer" in said
    assert "correct the labels" in said


def test_where_nothing_is_left_it_is_said_why(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(judged(0.5)), scored(undetermined())])
    assert _run(path, "--target", 0.1) == 2
    err = capsys.readouterr().err
    assert "(1 undetermined, 1 unlabelled): --labels names a file" in err
    path = jsonl(tmp_path / "b.jsonl", [scored(undetermined())])
    assert _run(path, "--percentile", 10) == 2
    assert "(1 undetermined): a threshold needs answers with scores" in capsys.readouterr().err
    empty = tmp_path / "c.jsonl"
    empty.touch()
    assert _run(empty, "--percentile", 10) == 2
    assert "no evaluator judged" in capsys.readouterr().err


# -- whose scores ----------------------------------------------------------------------------------


def test_of_several_evaluators_one_is_named(tmp_path: Path, capsys: Any) -> None:
    runs = [
        scored(judged(at / 10), *([judged(1.0, "FEWL")] if at else []), at=at) for at in range(10)
    ]
    path = jsonl(tmp_path / "a.jsonl", runs)
    assert _run(path, "--percentile", 50) == 64
    assert "name one: 'FEWL', 'RefChecker'" in _flat(capsys.readouterr().err)
    assert _run(path, "--percentile", 50, "--evaluator", "Nobody") == 64
    assert "'FEWL', 'RefChecker'; got 'Nobody'" in _flat(capsys.readouterr().err)
    assert _run(path, "--percentile", 50, "--evaluator", "FEWL") == 0
    assert _lines(capsys.readouterr().out)["left out"] == "1 not judged"
    assert Threshold.load(tmp_path / "a.threshold.json").evaluator == "FEWL"


def _flat(text: str) -> str:
    """Return a message without the frame and the line breaks that a terminal adds."""
    return " ".join(text.translate({ord("│"): " "}).split())


def test_scores_that_cannot_be_compared_are_refused_with_what_would_do(
    tmp_path: Path, capsys: Any
) -> None:
    old, new = _case(20, model="gpt-3"), _case(30, model="gpt-4")
    later = [
        run.model_copy(update={"time": run.time.replace(year=2027), "id": f"later-{at}"})
        for at, run in enumerate(new.runs)
    ]
    path = jsonl(tmp_path / "a.jsonl", [*old.runs, *later])
    assert _run(path, "--percentile", 50) == 2
    err = capsys.readouterr().err
    assert "model: 'gpt-4' (30), 'gpt-3' (20)" in err
    assert f"demur log list {path} --since TIME -n 1000000 --json > part.jsonl" in err
    part, since = tmp_path / "part.jsonl", ("--since", "2027-01-01")
    assert cli.run(["log", "list", str(path), *since, "-n", "1000000", "--json"]) == 0
    part.write_text(capsys.readouterr().out)
    assert _run(part, "--percentile", 50) == 0
    assert Threshold.load(tmp_path / "part.threshold.json").fingerprints == {"model": "gpt-4"}


def test_scores_that_are_bound_to_nothing_give_a_number(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", [scored(refuted()), scored(found())])
    assert _run(path, "--percentile", 50) == 0
    use = _lines(capsys.readouterr().out)["use"]
    assert use.startswith(f'threshold=Threshold.load("{tmp_path / "a.threshold.json"}").value: ')


# -- what is said ----------------------------------------------------------------------------------


def test_the_line_to_use_it_runs(tmp_path: Path, capsys: Any) -> None:
    case = _case(labelled=True)
    path = jsonl(tmp_path / 'a "b".jsonl', case.runs)
    assert _run(path, "--target", 0.1, "--confidence", 0.8) == 0
    use = _lines(capsys.readouterr().out)["use"]
    given = eval(  # noqa: S307  # our own words, tried as a user would
        use.replace("...,", ""), {"RefChecker": lambda **options: options, "Threshold": Threshold}
    )
    assert given == {"aggregation": "soft", "threshold": _expected(case, 0.1, 0.8)}


def test_what_is_guaranteed_is_said_and_what_is_not(tmp_path: Path, capsys: Any) -> None:
    case = _case(labelled=True)
    path = jsonl(tmp_path / "a.jsonl", case.runs)
    assert _run(path, "--target", 0.07, "--confidence", 0.95) == 0
    chosen = Threshold.load(tmp_path / "a.threshold.json")
    told = _lines(capsys.readouterr().out)
    assert told["threshold"] == f"{chosen.value:g}, of the scores of RefChecker"
    assert told["guaranteed"] == (
        "by Learn then Test: at most 7 % of hallucinated answers pass a guard with "
        'on_abstain="pass" that is not open on errors, with a confidence of 95 %, if later answers '
        "are like these"
    )
    assert told["chosen from"] == "200 answers, 67 of them hallucinated"
    share = f"{chosen.passed:,} ({chosen.passed / 200:.1%})"
    assert (
        told["of these pass"] == f"{share}, {chosen.passed_hallucinated} of the hallucinated ones"
    )
    assert "of those that pass are hallucinated (95 %: " in told["not guaranteed"]


def test_best_f1_and_percentiles_guarantee_nothing(tmp_path: Path, capsys: Any) -> None:
    case = _case(labelled=True)
    evaluations = [judged(score) for score in case.scores]
    path = jsonl(tmp_path / "a.jsonl", case.runs)
    out = tmp_path / "t.json"
    assert _run(path, "--best-f1", "-o", out) == 0
    assert Threshold.load(out) == best_f1(evaluations, case.labels)
    told = _lines(capsys.readouterr().out)
    assert told["guaranteed"].startswith("nothing: it finds hallucinated answers with the best F1")
    assert _run(path, "--percentile", 12.5, "-o", out, "--force") == 0
    assert Threshold.load(out) == percentile(evaluations, 12.5)
    told = _lines(capsys.readouterr().out)
    assert told["guaranteed"].startswith("nothing: it is a percentile; at most 12.5 %")
    assert "not guaranteed" not in told


def test_json_is_one_line_that_holds_the_threshold(tmp_path: Path, capsys: Any) -> None:
    case = _case(labelled=True)
    path = jsonl(tmp_path / "a.jsonl", case.runs)
    assert _run(path, "--target", 0.1, "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert Threshold.model_validate(told["threshold"]) == _expected(case)
    assert Threshold.load(told["saved"]) == _expected(case)
    assert told["file"] == str(path)


@pytest.mark.parametrize("options", [["--percentile", 50], ["--percentile", 50, "--json"]])
def test_names_cannot_steer_a_terminal(
    options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(
        import_module("demur.cli.calibrate"),
        "output",
        lambda: Console(force_terminal=True, width=100, highlight=False),
    )
    one = found(HOSTILE, 0.5, fingerprints={"evaluator": HOSTILE, HOSTILE: HOSTILE})
    path = jsonl(tmp_path / "a.jsonl", [scored(one, at=at) for at in range(3)])
    assert _run(path, *options) == 0
    out = re.sub(r"\x1b\[[01]m", "", capsys.readouterr().out)
    assert all(sign.isprintable() or sign == "\n" for sign in out)


# -- what is refused -------------------------------------------------------------------------------


def test_too_few_labels_save_nothing(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", _case(30, labelled=True).runs)
    assert _run(path, "--target", 0.05) == 2
    assert "at least 45 are needed" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "--target, such as 0.05, --best-f1 or --percentile"),
        (["--target", 0.1, "--best-f1"], "--target and --best-f1 exclude each other"),
        (["--best-f1", "--percentile", 5], "--best-f1 and --percentile exclude each other"),
        (["--confidence", 0.9, "--best-f1"], "--confidence has no effect with --best-f1"),
        (["--labels", "x.csv", "--percentile", 5], "--labels has no effect with --percentile"),
        (["--target", 0], "above 0 and below 1, got 0"),
        (["--target", "nan"], "above 0 and below 1, got nan"),
        (["--target", 0.1, "--confidence", 1], "above 0 and below 1, got 1"),
        (["--percentile", 101], "from 0 to 100, got 101"),
        (["--percentile", 5, "-o", "nowhere/t.json"], "there is no folder nowhere"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[object],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = jsonl(tmp_path / "a.jsonl", _case(10).runs)
    assert _run(path, *options) == 64
    assert why in _flat(capsys.readouterr().err)
    assert [*tmp_path.iterdir()] == [path]


def test_no_file_is_written_over(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", _case(10).runs)
    there = tmp_path / "a.threshold.json"
    there.write_text("mine")
    assert _run(path, "--percentile", 50) == 64
    assert "exists: replace it with --force" in _flat(capsys.readouterr().err)
    assert there.read_text() == "mine"
    before = path.read_bytes()
    assert _run(path, "--percentile", 50, "-o", path, "--force") == 64
    assert "would replace the scores" in _flat(capsys.readouterr().err)
    assert path.read_bytes() == before
    assert _run(path, "--percentile", 50, "--force") == 0
    assert Threshold.load(there).percentile == 50


def test_the_labels_are_not_written_over(tmp_path: Path, capsys: Any) -> None:
    case = _case(10)
    path, labels = jsonl(tmp_path / "a.jsonl", case.runs), _csv(tmp_path / "l.csv", case)
    before = labels.read_bytes()
    assert _run(path, "--labels", labels, "--best-f1", "-o", labels, "--force") == 64
    assert "would replace the labels" in _flat(capsys.readouterr().err)
    assert labels.read_bytes() == before


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_is_no_file(folder: str, capsys: Any) -> None:
    assert _run(folder, "--percentile", 5) == 64
    assert "is a directory" in _flat(capsys.readouterr().err)


def test_a_pipe_would_be_read_in_part(tmp_path: Path, capsys: Any) -> None:
    path, pipe = jsonl(tmp_path / "a.jsonl", _case(10).runs), tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    os.write(held, path.read_bytes()[:1000])
    assert _run(pipe, "--percentile", 5) == 2
    assert "is a pipe" in _flat(capsys.readouterr().err)
    os.close(held)


def test_labels_of_other_answers_only(tmp_path: Path, capsys: Any) -> None:
    path = jsonl(tmp_path / "a.jsonl", _case(10).runs)
    labels = _labels(tmp_path / "l.csv", {"elsewhere": True})
    assert _run(path, "--labels", labels, "--target", 0.5) == 2
    assert "the one given has other ids, such as 'elsewhere'" in _flat(capsys.readouterr().err)


# -- several evaluations of an answer by one name --------------------------------------------------


def test_namesakes_are_not_taken_for_one(tmp_path: Path, capsys: Any) -> None:
    pairs = [(judged(0.9, model="a"), judged(0.1, model="b")), (judged(0.5, model="a"),)]
    path = jsonl(tmp_path / "a.jsonl", [scored(*pair, at=at) for at, pair in enumerate(pairs)])
    assert _run(path, "--percentile", 5) == 2
    assert "called 'RefChecker' judged the same answers" in _flat(capsys.readouterr().err)
    assert [*tmp_path.iterdir()] == [path]


def test_answers_judged_by_sentences_are_told(tmp_path: Path, capsys: Any) -> None:
    # A faulty evaluation has no fingerprints.
    fault = found("RefChecker", None, None, error="no reply")
    of_runs = [(judged(0.9), judged(0.2)), (judged(0.7),), (judged(0.6), fault)]
    path = jsonl(tmp_path / "a.jsonl", [scored(*one, at=at) for at, one in enumerate(of_runs)])
    assert _run(path, "--percentile", 0) == 0
    said = _lines(capsys.readouterr().out)
    assert said["by sentences"].startswith("1 answer, judged while streamed")
    assert said["threshold"].startswith("0.2,")
    assert _run(path, "--percentile", 0, "--json", "--force") == 0
    assert json.loads(capsys.readouterr().out)["by_sentences"] == 1


def test_nothing_is_guaranteed_by_scores_of_sentences(tmp_path: Path, capsys: Any) -> None:
    case = _case(200, labelled=True)
    streamed = scored(judged(0.9), judged(0.2), metadata={"hallucinated": True})
    path = jsonl(tmp_path / "a.jsonl", [*case.runs, streamed])
    assert _run(path, "--target", 0.1) == 2
    assert "judged 1 answer sentence by sentence" in _flat(capsys.readouterr().err)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    ("prints", "use"),
    [
        ({"evaluator": "ZeroShot"}, "this ZeroShot takes no threshold"),
        ({"evaluator": "Cascade", "min_confidence": "0.9"}, "this Cascade takes no threshold"),
        ({"evaluator": "ReverseValidation", "variant": "qg"}, "this ReverseValidation takes no"),
        (
            {"evaluator": "ReverseValidation", "variant": "em"},
            'ReverseValidation(..., variant="em", threshold=Threshold.load(',
        ),
    ],
)
def test_how_it_is_used(prints: dict[str, str], use: str, tmp_path: Path, capsys: Any) -> None:
    one = found("Any", 0.5, fingerprints=prints)
    path = jsonl(tmp_path / "a.jsonl", [scored(one, at=at) for at in range(3)])
    assert _run(path, "--percentile", 5) == 0
    assert use in _lines(capsys.readouterr().out)["use"]
