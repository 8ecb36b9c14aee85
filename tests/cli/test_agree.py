"""Test `demur agree`: what it reads, counts, shows and refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from demur import Evaluation, RefChecker, Sample, Threshold, cli
from demur.calibration import best_f1
from demur.observe import Record
from support.commands import Command, csv_of, write_rows
from support.evaluators import Scripted
from support.records import (
    HOSTILE,
    PASSAGE,
    attempt,
    found,
    hostile,
    jsonl,
    nothing_to_check,
    refuted,
    run,
    sqlite,
    undetermined,
)
from support.scoring import rows, run_on


def judged(evaluation: Evaluation, at: int, **fields: Any) -> Record:
    """Return a run that asks a question of its own."""
    made = attempt(evaluation, question=f"How long is river {at}?", **fields.pop("attempt", {}))
    return run(made, at=at, **fields)


def _runs(count: int = 60, **fields: Any) -> tuple[list[Record], dict[str, bool]]:
    """Return runs with labels, of which the judge is wrong about some and undetermined of others.

    Nothing is said of the runs in their metadata.
    """
    draw = random.Random(7)
    runs, labels = [], {}
    for at in range(count):
        wrong = draw.random() < 0.4
        fails = wrong is not (at % 7 == 0)
        evaluation = refuted() if fails else found()
        if at % 10 == 3:
            evaluation = undetermined()
        if at % 20 == 5:
            evaluation = nothing_to_check()
        runs.append(judged(evaluation, at, **fields))
        labels[runs[-1].id] = wrong
    return runs, labels


def _expected(runs: list[Record], labels: Mapping[str, bool]) -> tuple[int, float]:
    """Return the number of answers that both decided, and kappa."""
    pairs = [
        (one.attempts[0].evaluations[0].passed is False, labels[one.id])
        for one in runs
        if one.attempts[0].evaluations[0].passed is not None and one.id in labels
    ]
    flagged, wrong = (np.mean(each) for each in zip(*pairs, strict=True))
    same, chance = np.mean([a is b for a, b in pairs]), 1 - flagged - wrong + 2 * flagged * wrong
    return len(pairs), float((same - chance) / (1 - chance))


Told = Callable[..., dict[str, Any]]


def _run(*arguments: object) -> int:
    return cli.run(["agree", *map(str, arguments)])


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command("agree", tmp_path, capsys)


@pytest.fixture
def told(command: Command) -> Told:
    return command.as_json


def _of_all(held: Mapping[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(one["raters"]): one for one in held["agreement"] if one["slice"] == "all"}


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [jsonl, sqlite])
def test_labels_are_those_of_a_file_or_of_the_metadata(
    write: Callable[..., Path], tmp_path: Path, told: Told
) -> None:
    runs, labels = _runs()
    log = write(tmp_path / "a.log", runs)
    anna = csv_of(tmp_path / "anna.csv", labels)
    number, value = _expected(runs, labels)
    by_file = _of_all(told(log, "--labels", anna))["RefChecker", str(anna)]
    assert (by_file["answers"], by_file["kappa"]["value"]) == (number, pytest.approx(value))
    low, high = by_file["kappa"]["interval"]
    assert low < value < high
    marked = [one.model_copy(update={"metadata": {"hallucinated": labels[one.id]}}) for one in runs]
    by_metadata = _of_all(told(write(tmp_path / "b.log", marked)))["RefChecker", "people"]
    assert {**by_metadata, "raters": by_file["raters"]} == by_file


def test_labels_in_the_log_are_not_mixed_with_those_of_a_file(tmp_path: Path, told: Told) -> None:
    runs, labels = _runs()
    marked = [one.model_copy(update={"metadata": {"hallucinated": True}}) for one in runs]
    some = dict([*labels.items()][:40])
    held = told(
        jsonl(tmp_path / "a.jsonl", marked), "--labels", csv_of(tmp_path / "anna.csv", some)
    )
    ((_, one),) = _of_all(held).items()
    assert (one["answers"], one["kappa"]["value"]) == pytest.approx(_expected(runs[:40], some))


class Odd(Scripted):
    """Pass every third answer."""

    @property
    def fingerprints(self) -> dict[str, str]:
        return {"evaluator": "Odd"}


def _odd(sample: Sample) -> Evaluation:
    number = int(sample.answer.split()[1])
    return Evaluation(name="odd", score=0.5, passed=number % 3 == 0)


def test_results_of_demur_score_are_read_and_have_no_slices(tmp_path: Path, told: Told) -> None:
    out = tmp_path / "scores.jsonl"
    run_on(rows(tmp_path / "rows.jsonl", 30), out, {"odd": Odd(script=_odd)})
    labels = {f"q{at}": at % 3 != 0 or at == 3 for at in range(30)}
    held = told(out, "--labels", csv_of(tmp_path / "anna.csv", labels))
    (one,) = held["agreement"]
    assert (one["answers"], one["same"]) == (30, 29)
    assert [row["id"] for row in held["differing"]] == ["q3"]
    assert held["differing"][0]["question"] is None


def test_findings_of_demur_compare_have_labels_and_groups(
    tmp_path: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {
            "id": f"q{at}",
            "answer": f"City {at} is in {'Spain' if at % 2 else 'France'}.",
            "hallucinated": bool(at % 2),
            "group": at // 30,
        }
        for at in range(60)
    ]
    data, out = write_rows(tmp_path / "rows.jsonl", lines), tmp_path / "found.jsonl"
    command = ["compare", str(data), "--model", "small", "--method", "all-false", "-o", str(out)]
    assert cli.run(command) == 0
    capsys.readouterr()
    ((_, one),) = _of_all(told(out)).items()
    assert (one["answers"], one["same"], one["kappa"]["value"]) == (60, 30, 0)


# -- what is counted -------------------------------------------------------------------------------


def test_undetermined_answers_are_counted_by_label_and_are_in_no_kappa(
    tmp_path: Path, told: Told
) -> None:
    runs, labels = _runs()
    held = told(
        jsonl(tmp_path / "a.jsonl", runs), "--labels", csv_of(tmp_path / "anna.csv", labels)
    )
    counts = [*held["findings"].values()]
    total = {name: sum(one.get(name, 0) for one in counts) for name in ("undetermined", "failed")}
    assert total["undetermined"] == 6
    assert sum(one.get("nothing_to_check", 0) for one in counts) == 3
    assert sum(sum(one.values()) for one in counts) == 60
    ((_, one),) = _of_all(held).items()
    assert one["answers"] == 51
    decided = {row.id for row in runs if row.attempts[0].evaluations[0].passed is not None}
    assert {row["id"] for row in held["differing"]} <= decided


def test_the_answers_on_which_they_differ_come_with_claims_and_the_nearest_quotes(
    tmp_path: Path, told: Told
) -> None:
    passing = judged(found(claims=refuted().claims[:1]), 1)
    failing, agreed = judged(refuted(), 0), judged(refuted(), 2)
    labels = {passing.id: True, failing.id: False, agreed.id: True}
    held = told(
        jsonl(tmp_path / "a.jsonl", [failing, passing, agreed]),
        *("--labels", csv_of(tmp_path / "anna.csv", labels)),
    )
    first, second = held["differing"]
    assert (first["id"], second["id"]) == (passing.id, failing.id)
    assert [*first["says"].values()] == ["supported", "hallucinated"]
    # An answer that passed has no failing claim: any of its claims may be the wrong one.
    river = {"label": "Entailment", "claim": "The Danube is a river", "quote": PASSAGE}
    assert first["claims"] == [river]
    told_of = {claim["claim"]: (claim["label"], claim["quote"]) for claim in second["claims"]}
    assert told_of["The Danube is 4,000 km long"] == ("Contradiction", PASSAGE)
    label, quote = told_of["The mayor of Ulm says so"]
    assert label == "Neutral"
    assert quote in (None, PASSAGE)
    assert len(told_of) == 2
    assert second["question"] == "How long is river 0?"


def test_a_neutral_claim_is_shown_with_the_sentence_nearest_to_it(
    tmp_path: Path, told: Told
) -> None:
    contexts = ("The bridge is old. The mayor of Ulm is Martin.", PASSAGE)
    one = judged(refuted(), 0, attempt={"contexts": contexts})
    held = told(
        jsonl(tmp_path / "a.jsonl", [one]), "--labels", csv_of(tmp_path / "a.csv", {one.id: False})
    )
    quotes = {claim["claim"]: claim["quote"] for claim in held["differing"][0]["claims"]}
    assert quotes["The mayor of Ulm says so"] == "The mayor of Ulm is Martin."


def test_slices_are_by_language_length_and_source(tmp_path: Path, told: Told) -> None:
    runs, labels = _runs(40)
    german = {"answer": "Die Donau ist ein Fluss, und sie fließt durch die Stadt in das Meer."}
    more = [judged(found(), 100 + at, attempt=german) for at in range(3)]
    labels |= {one.id: False for one in more}
    held = told(
        jsonl(tmp_path / "a.jsonl", [*runs, *more]), "--labels", csv_of(tmp_path / "a.csv", labels)
    )
    by_slice = {one["slice"]: one for one in held["agreement"]}
    assert by_slice["language: German"]["answers"] == 3
    assert by_slice["language: German"]["kappa"] == {"value": None, "interval": None}
    assert "not defined" in by_slice["language: German"]["why"]
    assert by_slice["language: English"]["kappa"]["interval"] is not None
    assert by_slice["source: rivers.txt"]["answers"] == by_slice["all"]["answers"]
    assert (
        sum(one["answers"] for name, one in by_slice.items() if name[:5] == "words")
        == (by_slice["all"]["answers"])
    )


def test_redacted_texts_are_not_taken_for_a_language(tmp_path: Path, told: Told) -> None:
    runs, labels = _runs(redacted=True)
    held = told(
        jsonl(tmp_path / "a.jsonl", runs), "--labels", csv_of(tmp_path / "anna.csv", labels)
    )
    assert {one["slice"] for one in held["agreement"]} == {"all"}


def test_the_figures_are_the_same_each_time(tmp_path: Path, told: Told) -> None:
    runs, labels = _runs()
    log, anna = jsonl(tmp_path / "a.jsonl", runs), csv_of(tmp_path / "anna.csv", labels)
    ben = csv_of(tmp_path / "ben.csv", dict(reversed(labels.items())))
    first = told(log, "--labels", anna, "--labels", ben)
    assert told(log, "--labels", anna, "--labels", ben) == first


# -- two people ------------------------------------------------------------------------------------


def test_the_peoples_own_kappa_stands_beside_the_judges(
    tmp_path: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, labels = _runs(200)
    log, anna = jsonl(tmp_path / "a.jsonl", runs), csv_of(tmp_path / "anna.csv", labels)
    draw = random.Random(2)
    ben = csv_of(
        tmp_path / "ben.csv", {id: own is not (draw.random() < 0.4) for id, own in labels.items()}
    )
    kim = csv_of(tmp_path / "kim.csv", dict(labels))
    held = _of_all(told(log, "--labels", anna, "--labels", ben))
    assert [*held] == [
        ("RefChecker", str(anna)),
        ("RefChecker", str(ben)),
        (str(anna), str(ben)),
    ]
    assert held[str(anna), str(ben)]["answers"] == 200  # what the judge left open counts too
    assert _run(log, "--labels", anna, "--labels", ben) == 0
    out = capsys.readouterr().out
    # Two people who hardly agree ask no more of a judge.
    assert f"RefChecker and {anna} agree as well as people with each other." in out
    assert _run(log, "--labels", anna, "--labels", kim) == 0
    out = capsys.readouterr().out
    assert f"RefChecker and {anna} agree less than people with each other." in out
    assert _run(log, "--labels", anna) == 0
    assert "with each other" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["people", "anna"])
def test_a_judge_is_told_from_people_of_the_same_name(
    name: str, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [judged(found(name), at, metadata={"hallucinated": at < 9}) for at in range(30)]
    labels = {one.id: bool(one.metadata["hallucinated"]) for one in runs}
    given = ("--labels", csv_of(Path(name), labels)) if name == "anna" else ()
    held = told(jsonl(tmp_path / "a.jsonl", runs), *given)
    ((raters, one),) = _of_all(held).items()
    assert len({*raters}) == 2
    assert (one["answers"], one["same"], len(held["differing"])) == (30, 21, 9)
    assert [*held["differing"][0]["says"].values()] == ["supported", "hallucinated"]


# -- what is printed -------------------------------------------------------------------------------


def test_the_terminal_shows_figures_counts_and_differing_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, labels = _runs()
    number, value = _expected(runs, labels)
    others = {**labels, "elsewhere": True}
    log = jsonl(tmp_path / "a.jsonl", runs)
    assert _run(log, "--labels", csv_of(tmp_path / "anna.csv", others)) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split("\t") == ["answers", "who", "number", "same", "kappa", "95 %", "note"]
    first = lines[1].split("\t")
    assert (first[0], first[2], first[4]) == ("all", str(number), f"{value:.3f}")
    assert "in no kappa:" in out
    assert "undetermined" in out
    assert "labels of no answer  1" in out
    assert f"  Contradiction: The Danube is 4,000 km long “{PASSAGE}”" in lines
    assert err == ""


def test_no_text_of_an_answer_reaches_the_terminal_as_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = hostile()
    labels = csv_of(tmp_path / "anna.csv", {one.id: False})
    assert _run(jsonl(tmp_path / "a.jsonl", [one]), "--labels", labels, "--evaluator", HOSTILE) == 0
    out = capsys.readouterr().out
    assert one.id in out
    assert not any(sign in out for sign in "\x1b\x07\u202e\x9b\x00")
    json_options = ("--evaluator", HOSTILE, "--json")
    assert _run(tmp_path / "a.jsonl", "--labels", labels, *json_options) == 0
    assert not any(sign in capsys.readouterr().out for sign in "\x1b\x07\u202e\x9b\x00")


def test_many_differing_answers_are_cut_and_json_has_all(
    tmp_path: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [judged(found(), at) for at in range(30)]
    labels = {one.id: True for one in runs}
    log, anna = jsonl(tmp_path / "a.jsonl", runs), csv_of(tmp_path / "anna.csv", labels)
    assert len(told(log, "--labels", anna)["differing"]) == 30
    assert _run(log, "--labels", anna) == 0
    out = capsys.readouterr().out
    assert sum(one.id in out for one in runs) == 20
    assert "--json prints all" in out


# -- what is refused -------------------------------------------------------------------------------


def test_without_a_pair_nothing_is_compared(tmp_path: Path, command: Command) -> None:
    runs, labels = _runs(10)
    log = jsonl(tmp_path / "a.jsonl", runs)
    said = "no answer that RefChecker passed or failed has a label of people"
    assert said in command.refuses(log)
    anna = csv_of(tmp_path / "anna.csv", labels)
    other = csv_of(tmp_path / "ben.csv", {"elsewhere": True})
    assert str(other) in command.refuses(log, "--labels", anna, "--labels", other)
    scores = jsonl(tmp_path / "b.jsonl", [judged(found(passed=None), 0)])
    of_scores = csv_of(tmp_path / "c.csv", {json.loads(scores.read_text())["id"]: True})
    assert "only scores a threshold" in command.refuses(scores, "--labels", of_scores)


def test_several_judges_need_a_name_and_one_judge_must_not_be_two(
    tmp_path: Path, command: Command
) -> None:
    two = run(attempt(found(), refuted("FEWL")), metadata={"hallucinated": True})
    log = jsonl(tmp_path / "a.jsonl", [two])
    assert "name one: 'FEWL', 'RefChecker'" in command.refuses(log, code=64)
    assert _run(log, "--evaluator", "FEWL") == 0
    mixed = [
        judged(found(fingerprints={"model": model}), at, metadata={"hallucinated": True})
        for at, model in enumerate(("a", "b"))
    ]
    message = command.refuses(jsonl(tmp_path / "b.jsonl", mixed))
    assert "model: 'a' (1), 'b' (1)" in message
    same = run(
        attempt(found(fingerprints={"model": "a"}), found(fingerprints={"model": "b"})),
        metadata={"hallucinated": True},
    )
    assert "a name of its own" in command.refuses(jsonl(tmp_path / "c.jsonl", [same]))


def test_files_that_cannot_be_read_are_named(tmp_path: Path, command: Command) -> None:
    runs, _ = _runs(3)
    log = jsonl(tmp_path / "a.jsonl", runs)
    assert "nowhere.csv" in command.refuses(log, "--labels", tmp_path / "nowhere.csv")
    assert "nowhere.jsonl" in command.refuses(tmp_path / "nowhere.jsonl")


# -- a threshold's kappa beside a score ------------------------------------------------------------


class Bound(Scripted):
    """Give scores with fingerprints, and decide them by a threshold."""

    threshold: Threshold | float | None = None

    @property
    def fingerprints(self) -> dict[str, str]:
        return {"evaluator": "Bound"}


def _threshold() -> Threshold:
    scores = [0.1, 0.3, 0.2, 0.8, 0.9, 0.7, 0.4, 0.95]
    return best_f1(scores, [True, True, True, False, True, False, False, False])


def test_log_show_prints_the_kappa_of_the_threshold_beside_the_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threshold = _threshold()
    checker = Bound(script=lambda sample: 0.62, threshold=threshold)
    one = judged(checker.invoke({"answer": "It is so."}), 0)
    path = sqlite(tmp_path / "a.sqlite", [one])
    assert cli.run(["log", "show", str(path), one.id]) == 0
    assert threshold.kappa is not None
    value, low, high = threshold.kappa
    expected = f"score 0.62, threshold 0.4 (kappa with people {value:.2f} [{low:.2f}, {high:.2f}]"
    assert f"{expected}, 8 answers)" in capsys.readouterr().out


def test_a_number_as_threshold_and_a_score_without_one_are_shown_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (None, 0.5):
        checker = Bound(script=lambda sample: 0.62, threshold=number)
        evaluation = checker.invoke({"answer": "It is so."})
        assert "threshold" not in evaluation.details
        one = judged(evaluation, 0)
        path = jsonl(tmp_path / f"{number}.jsonl", [one])
        assert cli.run(["log", "show", str(path), one.id]) == 0
        assert "score 0.62\n" in capsys.readouterr().out


@pytest.mark.slow
def test_refchecker_records_the_kappa_of_its_threshold() -> None:
    bare = RefChecker("small")
    made = best_f1([0.2, 0.4, 0.9], [True, False, False], evaluator=bare)
    found_ = RefChecker("small", threshold=made).invoke(
        {"answer": "The Danube is long.", "contexts": [PASSAGE]}
    )
    assert made.kappa is not None
    assert found_.details["threshold"] == {
        "value": made.value,
        "samples": 3,
        "kappa": [*made.kappa],
    }
