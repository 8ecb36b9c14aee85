"""Test `demur calibrate`: what it reads, chooses, says and refuses."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demur import Evaluation, Sample, Threshold, cli
from demur.calibration import best_f1, calibrate, percentile
from demur.observe import Record, redactor
from support import records
from support.commands import Command, csv_of
from support.evaluators import Scripted
from support.records import found, jsonl, sqlite, undetermined
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


def _csv(path: Path, case: Case) -> Path:
    return csv_of(path, dict(zip(case.ids(), case.labels, strict=True)))


def _expected(case: Case, target: float = 0.1, confidence: float = 0.9) -> Threshold:
    evaluations = [judged(score) for score in case.scores]
    return calibrate(evaluations, case.labels, target=target, confidence=confidence)


class Calibrate(Command):
    """Run `demur calibrate`, and say what it chose."""

    def log(self, *runs: Record) -> Path:
        return jsonl(self.folder / "a.jsonl", runs)

    def told(self, *arguments: object) -> dict[str, str]:
        """Run it, and return the printed lines by their first words."""
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return dict(line.split("  ", 1) for line in out.splitlines())

    def chosen(self, name: str = "a") -> Threshold:
        return Threshold.load(self.folder / f"{name}.threshold.json")


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Calibrate:
    return Calibrate("calibrate", tmp_path, capsys)


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("write", "by"), [(jsonl, "metadata"), (sqlite, "labels")])
def test_a_log_gives_what_calibrate_gives(
    write: Callable[..., Path], by: str, tmp_path: Path, command: Calibrate
) -> None:
    case = _case(labelled=by == "metadata")
    path = write(tmp_path / "a.log", case.runs)
    options = [] if by == "metadata" else ["--labels", _csv(tmp_path / "labels.csv", case)]
    told = command.told(path, "--target", 0.1, *options)
    assert command.chosen() == _expected(case)
    assert told["saved to"] == str(tmp_path / "a.threshold.json")
    assert "left out" not in told
    again = command.as_json(path, "--target", 0.1, *options, "--force")
    assert Threshold.model_validate(again["threshold"]) == command.chosen() == _expected(case)
    assert (again["file"], again["saved"]) == (str(path), told["saved to"])


class Told(Scripted):
    """Give scores whose fingerprints are known."""

    @property
    def fingerprints(self) -> dict[str, str]:
        return {"evaluator": "Told", "model": "gpt"}


def _results(tmp_path: Path, scores: Sequence[float]) -> Path:
    """Write results of `demur score` for rows q0, q1 and so on."""
    data, out = rows(tmp_path / "rows.jsonl", len(scores)), tmp_path / "rows.scores.jsonl"

    def script(sample: Sample) -> float:
        return scores[int(sample.answer.split()[1])]

    run_on(data, out, {"config": Told(script=script, name="Told")})
    return out


def test_results_of_demur_score_are_labelled_by_key(tmp_path: Path, command: Calibrate) -> None:
    case = _case(60)
    path = _results(tmp_path, case.scores)
    known = {f"q{at}": label for at, label in enumerate(case.labels)}
    labels = csv_of(tmp_path / "labels.csv", known)
    before = path.read_bytes()
    told = command.told(path, "--target", 0.2, "--labels", labels)
    assert command.chosen("rows.scores").model_dump() == {
        **_expected(case, 0.2).model_dump(),
        "evaluator": "Scripted",
        "fingerprints": {"evaluator": "Told", "model": "gpt"},
    }
    assert told["use"].startswith("Told(..., threshold=Threshold.load(")
    assert path.read_bytes() == before


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
    change: Callable[[bytes], bytes], why: str, tmp_path: Path, command: Calibrate
) -> None:
    path = _results(tmp_path, [0.1, 0.2, 0.3])
    path.write_bytes(change(path.read_bytes()))
    assert why in command.refuses(path, "--percentile", 50)
    assert "cannot read" in command.refuses(tmp_path / "none.jsonl", "--percentile", 50)
    labels = tmp_path / "none.csv"
    assert "none.csv" in command.refuses(path, "--target", 0.1, "--labels", labels)


# -- what is left out ------------------------------------------------------------------------------


def test_what_is_left_out_is_counted(tmp_path: Path, command: Calibrate) -> None:
    case = _case()
    others = [
        scored(undetermined(), at=1000),
        scored(undetermined(), at=1001),
        scored(found(score=None, passed=False), at=1003),
        *(scored(judged(0.01), at=1010 + at) for at in range(5)),
    ]
    path = command.log(*case.runs, *others)
    with path.open("a") as file:
        file.write('{"id": 3}\n')
    known = dict(zip(case.ids(), case.labels, strict=True))
    said_of = {one.id: True for one in others[:3]}
    strangers = {f"x{at}": True for at in range(7)}
    labels = csv_of(tmp_path / "labels.csv", {**known, **said_of, **strangers})
    told = command.told(path, "--target", 0.1, "--labels", labels)
    assert told["left out"] == "2 undetermined, 1 without a score, 5 unlabelled"
    assert told["labels of no answer"] == "7: 'x0', 'x1', 'x2', 'x3', 'x4', ..."
    assert told["cannot be read"].startswith("1, first line 209: ")
    assert command.chosen() == _expected(case)
    whole = command.as_json(path, "--target", 0.1, "--labels", labels, "--force")
    assert whole["left_out"] == {
        "not judged": 0,
        "undetermined": 2,
        "without a score": 1,
        "unlabelled": 5,
        "damaged": 1,
    }
    assert whole["unknown_labels"] == 7
    # A percentile needs no labels.
    whole = command.as_json(path, "--percentile", 10, "--force")
    assert "unlabelled" not in whole["left_out"]
    assert whole["threshold"]["samples"] == 205


# -- answers with nothing to check -----------------------------------------------------------------


def test_hallucinations_that_state_nothing_are_counted_as_the_guard_treats_them(
    command: Calibrate,
) -> None:
    silent = [
        scored(nothing_to_check(), at=1000 + at, metadata={"hallucinated": at < 50})
        for at in range(59)  # These are the counts of the attack.
    ]
    path = command.log(*_case(300, labelled=True).runs, *silent)
    said = command.refuses(path, "--target", 0.05)
    assert "50 of the 150 hallucinated answers state nothing to check" in said
    assert "--on-abstain fail" in said
    told = command.told(path, "--target", 0.05, "--on-abstain", "fail")
    chosen = command.chosen()
    assert chosen.on_abstain == "fail"
    assert (chosen.samples, chosen.hallucinated) == (359, 150)
    assert 'pass a guard with on_abstain="fail"' in told["guaranteed"]
    assert told["chosen from"] == "359 answers, 150 of them hallucinated"
    assert told["nothing to check"] == (
        "59 answers, 50 of them hallucinated: counted as failing, so the guard has to fail them "
        '(on_abstain="fail")'
    )
    assert "left out" not in told


def test_where_no_score_decides_it_is_said_why(tmp_path: Path, command: Calibrate) -> None:
    silent = [scored(nothing_to_check(), at=at) for at in range(3)]
    for runs, way, why in (
        (silent, ["--percentile", 5], "no answer with a score is left of RefChecker (3 nothing to"),
        (
            [scored(judged(0.5)), scored(found(score=None), at=1)],
            ["--percentile", 5],
            "without a score, so no threshold decides what passes",
        ),
        (
            [scored(judged(0.5)), scored(undetermined())],
            ["--target", 0.1],
            "(1 undetermined, 1 unlabelled): --labels names a file",
        ),
        (
            [scored(undetermined())],
            ["--percentile", 10],
            "(1 undetermined): a threshold needs answers with scores",
        ),
        ([], ["--percentile", 10], "no evaluator judged"),
        (_case(30, labelled=True).runs, ["--target", 0.05], "at least 45 are needed"),
        (
            _case(10).runs,
            ["--target", 0.5, "--labels", csv_of(tmp_path / "l.csv", {"elsewhere": True})],
            "the one given has other ids, such as 'elsewhere'",
        ),
    ):
        assert why in command.refuses(command.log(*runs), *way)


# -- repeats ---------------------------------------------------------------------------------------


def test_repeats_are_counted_once_and_told(tmp_path: Path, command: Calibrate) -> None:
    case = _case(60)
    runs = [
        scored(judged(score), at=1000 * again + at, answer=f"{'  ' * again}No. {at}\n")
        for again in range(3)
        for at, score in enumerate(case.scores)
    ]
    path = command.log(*runs)
    known = {run.id: case.labels[at % 60] for at, run in enumerate(runs)}
    labels = csv_of(tmp_path / "labels.csv", known)
    told = command.told(path, "--target", 0.2, "--labels", labels)
    chosen = Threshold.load(path.with_suffix(".threshold.json"))
    assert (chosen.samples, chosen.hallucinated) == (60, 20)
    assert chosen.value == _expected(case, 0.2).value
    said = "120 answers more, which repeat others: the same text to the same question"
    assert told["counted once"] == said
    whole = command.as_json(path, "--percentile", 5, "--force")
    assert (whole["repeats"], whole["threshold"]["samples"]) == (120, 60)


def test_removed_answers_of_the_same_length_are_no_repeats(command: Calibrate) -> None:
    case = _case(60, labelled=True)
    path = command.log(*map(redactor("remove"), case.runs))
    told = command.told(path, "--target", 0.2)
    assert command.chosen().samples == 60
    assert told["not compared"].startswith("60 answers")


# -- whose scores ----------------------------------------------------------------------------------


def test_of_several_evaluators_one_is_named(command: Calibrate) -> None:
    runs = [
        scored(judged(at / 10), *([judged(1.0, "FEWL")] if at else []), at=at) for at in range(10)
    ]
    way = (command.log(*runs), "--percentile", 50)
    assert "name one: 'FEWL', 'RefChecker'" in command.refuses(*way, code=64)
    said = command.refuses(*way, "--evaluator", "Nobody", code=64)
    assert "'FEWL', 'RefChecker'; got 'Nobody'" in said
    assert command.told(*way, "--evaluator", "FEWL")["left out"] == "1 not judged"
    assert command.chosen().evaluator == "FEWL"


def test_scores_that_cannot_be_compared_are_refused_with_what_would_do(
    tmp_path: Path, command: Calibrate, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = _case(20, model="gpt-3"), _case(30, model="gpt-4")
    later = [
        run.model_copy(update={"time": run.time.replace(year=2027), "id": f"later-{at}"})
        for at, run in enumerate(new.runs)
    ]
    path = command.log(*old.runs, *later)
    said = command.refuses(path, "--percentile", 50)
    assert "model: 'gpt-4' (30), 'gpt-3' (20)" in said
    assert f"demur log list {path} --since TIME -n 1000000 --json > part.jsonl" in said
    part, since = tmp_path / "part.jsonl", ("--since", "2027-01-01")
    assert cli.run(["log", "list", str(path), *since, "-n", "1000000", "--json"]) == 0
    part.write_text(capsys.readouterr().out)
    command.told(part, "--percentile", 50)
    assert command.chosen("part").fingerprints == {"model": "gpt-4"}


def test_answers_judged_by_sentences_are_told_and_guarantee_nothing(command: Calibrate) -> None:
    # A faulty evaluation has no fingerprints.
    fault = found("RefChecker", None, None, error="no reply")
    of_runs = [(judged(0.9), judged(0.2)), (judged(0.7),), (judged(0.6), fault)]
    path = command.log(*(scored(*one, at=at) for at, one in enumerate(of_runs)))
    told = command.told(path, "--percentile", 0)
    assert told["by sentences"].startswith("1 answer, judged while streamed")
    assert told["threshold"].startswith("0.2,")
    assert command.as_json(path, "--percentile", 0, "--force")["by_sentences"] == 1
    streamed = scored(judged(0.9), judged(0.2), metadata={"hallucinated": True})
    path = command.log(*_case(labelled=True).runs, streamed)
    said = command.refuses(path, "--target", 0.1, "--force")
    assert "judged 1 answer sentence by sentence" in said


# -- what is said ----------------------------------------------------------------------------------


def test_what_is_guaranteed_is_said_and_how_it_is_used(tmp_path: Path, command: Calibrate) -> None:
    case = _case(labelled=True)
    path = jsonl(tmp_path / 'a "b".jsonl', case.runs)
    told = command.told(path, "--target", 0.07, "--confidence", 0.95)
    chosen = command.chosen('a "b"')
    assert chosen == _expected(case, 0.07, 0.95)
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
    given = eval(  # noqa: S307  # our own words, tried as a user would
        told["use"].replace("...,", ""),
        {"RefChecker": lambda **options: options, "Threshold": Threshold},
    )
    assert given == {"aggregation": "soft", "threshold": chosen}


def test_best_f1_and_percentiles_guarantee_nothing(tmp_path: Path, command: Calibrate) -> None:
    case = _case(labelled=True)
    evaluations = [judged(score) for score in case.scores]
    path, out = command.log(*case.runs), tmp_path / "t.json"
    told = command.told(path, "--best-f1", "-o", out)
    assert Threshold.load(out) == best_f1(evaluations, case.labels)
    assert told["guaranteed"].startswith("nothing: it finds hallucinated answers with the best F1")
    told = command.told(path, "--percentile", 12.5, "-o", out, "--force")
    assert Threshold.load(out) == percentile(evaluations, 12.5)
    assert told["guaranteed"].startswith("nothing: it is a percentile; at most 12.5 %")
    assert "not guaranteed" not in told


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
        # Scores that are bound to nothing give a number.
        ({}, 'threshold=Threshold.load("a.threshold.json").value: '),
    ],
)
def test_how_it_is_used(
    prints: dict[str, str],
    use: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Calibrate,
) -> None:
    monkeypatch.chdir(tmp_path)
    one = found("Any", 0.5, fingerprints=prints)
    path = command.log(*(scored(one, at=at) for at in range(3)))
    assert use in command.told(path.name, "--percentile", 5)["use"]


# -- what is refused -------------------------------------------------------------------------------


def test_options_that_do_not_go_together_or_name_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Calibrate
) -> None:
    monkeypatch.chdir(tmp_path)
    path = command.log(*_case(10).runs)
    for options, why in (
        ([path], "--target, such as 0.05, --best-f1 or --percentile"),
        ([path, "--target", 0.1, "--best-f1"], "--target and --best-f1 exclude each other"),
        ([path, "--best-f1", "--percentile", 5], "--best-f1 and --percentile exclude each other"),
        (
            [path, "--confidence", 0.9, "--best-f1"],
            "--confidence has no effect with --best-f1",
        ),
        (
            [path, "--labels", "x.csv", "--percentile", 5],
            "--labels has no effect with --percentile",
        ),
        ([path, "--target", 0], "above 0 and below 1, got 0"),
        ([path, "--target", "nan"], "above 0 and below 1, got nan"),
        ([path, "--target", 0.1, "--confidence", 1], "above 0 and below 1, got 1"),
        ([path, "--percentile", 101], "from 0 to 100, got 101"),
        ([path, "--percentile", 5, "-o", "nowhere/t.json"], "there is no folder nowhere"),
        ([".", "--percentile", 5], "is a directory"),
    ):
        assert why in command.refuses(*options, code=64)


def test_no_file_is_written_over(tmp_path: Path, command: Calibrate) -> None:
    case = _case(10)
    path, labels = command.log(*case.runs), _csv(tmp_path / "l.csv", case)
    (tmp_path / "a.threshold.json").write_text("mine")
    said = command.refuses(path, "--percentile", 50, code=64)
    assert "exists: replace it with --force" in said
    said = command.refuses(path, "--percentile", 50, "-o", path, "--force", code=64)
    assert f"--out: it would replace a file that is read, {path}" in said
    way = ("--labels", labels, "--best-f1", "-o", labels, "--force")
    said = command.refuses(path, *way, code=64)
    assert f"--out: it would replace a file that is read, {labels}" in said
    command.told(path, "--percentile", 50, "--force")
    assert command.chosen().percentile == 50
