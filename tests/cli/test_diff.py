"""Test `demur diff`: what it pairs, shows, writes and refuses, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

from demur import Evaluation
from demur._text import one_line
from demur.observe import Record, redactor
from support import records
from support.commands import Command, write_rows
from support.records import HOSTILE, found, jsonl, nothing_to_check, refuted, sqlite, undetermined

RISES = "failure rate rises by 2 points at 95 %"
PRINTS = {"evaluator": "RefChecker", "model": "gpt"}
TURNS = {
    "passed, then passed": (found, found),
    "passed, then failed": (found, refuted),
    "failed, then passed": (refuted, found),
    "failed, then failed": (refuted, refuted),
    "undetermined, then passed": (undetermined, found),
    "passed, then undetermined": (found, undetermined),
    "passed, then nothing to check": (found, nothing_to_check),
}


class Diff(Command):
    """Run `demur diff` on logs that it writes."""

    _runs = 0

    def as_json(self, *arguments: object, codes: Iterable[int] = (0, 1, 2)) -> dict[str, Any]:
        return super().as_json(*arguments, codes=codes)

    def log(self, name: str, answers: Iterable[tuple[str | None, Evaluation]]) -> Path:
        """Write a log of answers to questions, as runs that no other log has."""
        self._runs += 1
        return jsonl(
            self.folder / name,
            [_run(question, one, at=self._runs * 10_000 + at) for at, (question, one) in
             enumerate(answers)],
        )  # fmt: skip

    def logs(self, **turns: int) -> tuple[Path, Path]:
        """Write two logs of the same questions, with as many turns of each kind."""
        kinds = [TURNS[turn.replace("_", " ").replace(" then", ", then")] for turn in turns]
        both = [kind for kind, times in zip(kinds, turns.values(), strict=True)
                for _ in range(times)]  # fmt: skip
        sides = [
            [(f"Question {at}?", made[side]()) for at, made in enumerate(both)] for side in (0, 1)
        ]
        return self.log("old.jsonl", sides[0]), self.log("new.jsonl", sides[1])


def _run(question: str | None, evaluation: Evaluation, at: int = 0, **fields: Any) -> Record:
    return records.run(records.attempt(evaluation, question=question), at=at, **fields)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Diff:
    return Diff("diff", tmp_path, capsys)


def _results(path: Path, answers: Sequence[tuple[str, Evaluation]], **fields: str) -> Path:
    """Write results of `demur score`, by the rows' ids."""
    head = {"demur_scores": 1, "input": {"name": "rows.jsonl", "sha256": "0"}, "settings": {}}
    lines = [
        {"key": key, "row": key.partition(":")[0], "evaluator": "config", **fields,
         "evaluation": evaluation.model_dump(mode="json")}
        for key, evaluation in answers
    ]  # fmt: skip
    return write_rows(path, (head, *lines))


# -- pairs -----------------------------------------------------------------------------------------


def test_answers_of_logs_are_paired_by_question_and_the_rest_is_counted(command: Diff) -> None:
    old = command.log(
        "old.jsonl", [("A?", found()), ("B?", found()), ("C?", found()), (None, found())]
    )
    new = command.log("new.jsonl", [("B?", refuted()), (" A?\n", found()), ("D?", refuted())])
    told = command.as_json(old, new)
    assert (told["pairs"], told["not_paired"]) == (2, [2, 1])
    (change,) = told["evaluators"]
    assert change["worse"] == [["B?", "Neutral: The mayor of Ulm says so", f"“{records.PASSAGE}”"]]
    code, out, _ = command.run(old, new)
    assert code == 0
    assert f"2 pairs of answers; not paired: 2 of {old}, 1 of {new}" in out


@pytest.mark.parametrize("write", [jsonl, sqlite])
def test_runs_that_were_judged_again_are_paired_by_id(
    write: Callable[..., Path], tmp_path: Path, command: Diff
) -> None:
    runs = [_run("The same?", found(), at=at) for at in range(3)]
    again = [run.model_copy(update={"attempts": (records.attempt(refuted()),)}) for run in runs]
    told = command.as_json(write(tmp_path / "old", runs[1:]), jsonl(tmp_path / "new", again[:2]))
    assert (told["pairs"], told["not_paired"]) == (1, [1, 1])
    assert told["evaluators"][0]["findings"]["passed, then failed"] == 1


def test_removed_questions_of_the_same_length_are_not_taken_for_the_same(command: Diff) -> None:
    remove, hashed = redactor("remove"), redactor("hash")
    old = [_run(f"Question {at}?", found(), at=at) for at in range(9)]
    new = [_run(f"Question {at}?", refuted(), at=100 + at) for at in range(9)]
    logs = [
        jsonl(command.folder / f"removed {len(run)}", map(remove, run)) for run in (old, new[1:])
    ]
    assert "0 pairs of answers" in command.refuses(*logs, code=2)
    judged_again = command.as_json(logs[0], logs[0])
    assert judged_again["evaluators"][0]["figures"]["failure rate"]["groups"] == 9
    logs = [
        jsonl(command.folder / f"hashed {len(run)}", map(hashed, run)) for run in (old, new[1:])
    ]
    assert command.as_json(*logs)["pairs"] == 8


def test_a_question_that_occurs_several_times_is_one_group(command: Diff) -> None:
    old = command.log("old.jsonl", [("A?", found())] * 30 + [("B?", found())] * 2)
    new = command.log("new.jsonl", [("A?", refuted())] * 29 + [("B?", found())] * 3)
    told = command.as_json(old, new, "--fail-if", RISES)
    assert (told["pairs"], told["not_paired"]) == (31, [1, 1])
    assert told["evaluators"][0]["figures"]["failure rate"]["groups"] == 2
    assert told["conditions"][0]["holds"] is None
    assert "2 questions with a failure rate are too few" in told["conditions"][0]["why"]


def test_results_of_demur_score_are_paired_by_key(tmp_path: Path, command: Diff) -> None:
    old = _results(tmp_path / "old", [("q1:a", found()), ("q1:b", refuted()), ("q2", found())])
    new = _results(tmp_path / "new", [("q2", refuted()), ("q1:b", found()), ("q3", found())])
    told = command.as_json(old, new)
    assert (told["pairs"], told["not_paired"]) == (2, [1, 1])
    (change,) = told["evaluators"]
    assert change["worse"][0][:2] == ["q2", "Neutral: The mayor of Ulm says so"]
    assert change["better"] == [["q1:b"]]
    told = command.as_json(old, _results(tmp_path / "new", [("q1:a", found()), ("q1:b", found())]))
    assert told["evaluators"][0]["figures"]["failure rate"]["groups"] == 1


def test_what_cannot_be_compared_is_refused(tmp_path: Path, command: Diff) -> None:
    old = command.log("old.jsonl", [("A?", found()), ("", found())])
    other = command.log("other.jsonl", [("B?", refuted()), ("", found())])
    said = command.refuses(old, other, code=2)
    assert "not paired: 2 of" in said
    assert "the same question" in said
    fewl = command.log("fewl.jsonl", [("A?", found("FEWL"))])
    assert "an evaluator judged in both runs" in command.refuses(old, fewl, code=2)
    assert "expected an evaluator that" in command.refuses(old, old, "--evaluator", "X", code=64)
    assert "cannot read" in command.refuses(old, tmp_path / "none", code=2)


# -- what is shown ---------------------------------------------------------------------------------


def test_undetermined_answers_are_neither_passed_nor_failed(command: Diff) -> None:
    told = command.as_json(
        *command.logs(
            passed_then_passed=3, passed_then_undetermined=2, undetermined_then_passed=1,
            passed_then_failed=1, passed_then_nothing_to_check=1,
        )
    )  # fmt: skip
    (change,) = told["evaluators"]
    assert change["findings"]["passed, then undetermined"] == 2
    assert change["findings"]["passed, then nothing to check"] == 1
    figures = change["figures"]
    assert figures["failure rate"]["pairs"] == 4
    assert figures["failure rate"]["after"]["value"] == 0.25
    assert figures["undetermined rate"]["difference"]["value"] == pytest.approx(1 / 8)
    assert figures["mean score"]["pairs"] == 4
    assert figures["mean score"]["difference"]["value"] == pytest.approx(-0.75 / 4)


def test_evaluators_that_both_have_are_compared(command: Diff) -> None:
    def answers(*names: str) -> list[Record]:
        return [
            records.run(records.attempt(*map(found, names), question=f"{at}?"), at=at)
            for at in range(2)
        ]

    old = jsonl(command.folder / "old", answers("A", "B", "C"))
    new = jsonl(command.folder / "new", answers("B", "A", "D"))
    assert [one["evaluator"] for one in command.as_json(old, new)["evaluators"]] == ["A", "B"]
    told = command.as_json(old, new, "--evaluator", "B")
    assert [one["evaluator"] for one in told["evaluators"]] == ["B"]
    mixed = jsonl(command.folder / "mixed", [*answers("A")[:1], *answers("B")[1:]])
    told = command.as_json(old, mixed, "--evaluator", "A")
    assert told["evaluators"][0]["findings"]["passed, then not judged"] == 1


def test_figures_and_what_changed_are_shown(command: Diff) -> None:
    old, new = command.logs(passed_then_passed=40, passed_then_failed=9, failed_then_passed=1)
    code, out, _ = command.run(old, new)
    assert code == 0
    (row,) = [line for line in out.splitlines() if line.startswith("| failure rate")]
    assert row.startswith("| failure rate | 50 | 0.020 | 0.004 to 0.105 | 0.180 | ")
    assert row.endswith(" | 0.160 | 0.030 to 0.278 | 0.021 |")
    assert (
        out.index("**9 got worse**") < out.index("` Question 48? `") < out.index("**1 got better**")
    )


def test_unreadable_runs_are_told(command: Diff) -> None:
    old, new = command.logs(passed_then_passed=3)
    with new.open("a") as file:
        file.write('{"id": 3}\n')
    code, _, err = command.run(old, new)
    assert code == 0
    assert "line 4 is left out" in " ".join(err.split())


# -- conditions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (RISES, 1),
        ("Failure  rate rises by 2 point at 95%", 1),
        ("failure rate rises by 0 points at 99.9 %", 1),
        ("failure rate rises by 20 points at 95 %", 0),
        ("failure rate falls by 0 points at 95 %", 0),
        ("mean score falls by 2.5 points at 90 %", 1),
        ("mean score rises by 0 points at 95 %", 0),
        ("undetermined rate rises by 1 points at 95 %", 1),
        ("undetermined rate rises by 15 points at 95 %", 0),
    ],
)
def test_the_exit_code_says_whether_a_condition_holds(
    condition: str, code: int, command: Diff
) -> None:
    logs = command.logs(
        passed_then_passed=150, passed_then_failed=25, failed_then_passed=2,
        passed_then_undetermined=12,
    )  # fmt: skip
    ended, out, _ = command.run(*logs, "--fail-if", condition)
    assert ended == code
    assert f"` {condition if '  ' not in condition else one_line(condition)} (RefChecker) `" in out
    assert ("does not hold: the " in out) is (code == 0)


def test_too_few_pairs_are_told_in_words(command: Diff) -> None:
    code, out, _ = command.run(*command.logs(passed_then_failed=4), "--fail-if", RISES)
    assert code == 2
    assert "cannot be told: 4 questions with a failure rate are too few with 95 % confidence" in out
    logs = command.logs(passed_then_failed=5)
    assert command.run(*logs, "--fail-if", RISES)[0] == 1
    logs = command.logs(passed_then_undetermined=30)
    code, out, _ = command.run(*logs, "--fail-if", RISES)
    assert code == 2
    assert "0 questions with a failure rate" in out


def test_one_condition_that_holds_is_enough_and_several_are_asked_more_strictly(
    command: Diff,
) -> None:
    logs = command.logs(passed_then_passed=150, passed_then_failed=25)
    falls = "mean score rises by 1 points at 95 %"
    told = command.as_json(*logs, "--fail-if", falls, "--fail-if", RISES)
    assert [one["holds"] for one in told["conditions"]] == [False, True]
    assert all("97.5 % confidence" in one["why"] for one in told["conditions"])
    assert command.run(*logs, "--fail-if", falls, "--fail-if", RISES)[0] == 1


def test_a_confidence_next_to_certainty_is_read(command: Diff) -> None:
    logs = command.logs(passed_then_passed=1100)
    sure = ["--fail-if", f"{RISES[:-4]}99.99999999999999 %"]
    told = command.as_json(*logs, *sure, *sure, *sure)
    assert [one["holds"] for one in told["conditions"]] == [False] * 3


@pytest.mark.parametrize(
    "condition",
    [
        "", "failure rate", "failure rate rises by 2 % at 95 %",
        "accuracy falls by 2 points at 95 %",
        "failure rate rises by -2 points at 95 %", "failure rate rises by 2 points",
        "failure rate rises by 2 points at 100 %", "failure rate rises by 2 points at 5 %",
        "failure rate rises by ٢ points at 95 %", f"{RISES} or so",
    ],
)  # fmt: skip
def test_a_condition_that_cannot_be_read_is_refused(condition: str, command: Diff) -> None:
    said = command.refuses("none", "none", "--fail-if", condition, code=64)
    assert "expected FIGURE rises|falls by N points at C %" in said


def test_a_judge_that_changed_too_is_told_and_refused_for_conditions(command: Diff) -> None:
    old = command.log("old", [(f"{at}?", found(fingerprints=PRINTS)) for at in range(9)])
    other = found(fingerprints={**PRINTS, "model": "gpt-mini"})
    silent = undetermined().model_copy(update={"fingerprints": {}})
    new = command.log("new", [*((f"{at}?", other) for at in range(8)), ("8?", silent)])
    code, out, _ = command.run(old, new)
    assert code == 0
    assert "**The judge changed too:** ` model: 'gpt' (9), 'gpt-mini' (8) `" in out
    said = command.refuses(old, new, "--fail-if", RISES, code=2)
    assert "the judge changed too" in said
    assert "RefChecker: model: 'gpt' (9), 'gpt-mini' (8)" in said
    assert "--other-judge" in said
    assert command.run(old, new, "--fail-if", RISES, "--other-judge")[0] == 0
    same = command.log(
        "same", [*((f"{at}?", found(fingerprints=PRINTS)) for at in range(8)), ("8?", silent)]
    )
    assert command.run(old, same, "--fail-if", RISES)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worse", "better", "margin", "least", "most"),
    [(0.05, 0.05, 0, 0, 5), (0.05, 0.05, 2, 0, 5), (0.11, 0.01, 2, 95, 100)],
    ids=["equal", "equal, by 2 points", "10 points worse"],
)
def test_noise_does_not_flip_the_exit_code_and_a_real_rise_does(
    worse: float, better: float, margin: int, least: int, most: int, command: Diff
) -> None:
    draw = np.random.default_rng(0)
    condition = f"failure rate rises by {margin} points at 95 %"
    verdicts = {bad: found(score=1 - bad, passed=not bad) for bad in (0, 1)}
    codes = []
    for _ in range(100):
        turns = draw.choice(4, size=200, p=[worse, better, 0.1, 0.9 - worse - better])
        sides = [[verdicts[int(turn in bad)] for turn in turns] for bad in ((1, 2), (0, 2))]
        rows = [[(f"q{at}", one) for at, one in enumerate(side)] for side in sides]
        old, new = (_results(command.folder / f"{at}", side) for at, side in enumerate(rows))
        codes.append(command.run(old, new, "--fail-if", condition)[0])
    assert {*codes} <= {0, 1}
    assert least <= codes.count(1) <= most


# -- what is written -------------------------------------------------------------------------------


def test_markdown_goes_to_a_file_and_replaces_no_run(tmp_path: Path, command: Diff) -> None:
    old, new = command.logs(passed_then_passed=5, passed_then_failed=60)
    page = tmp_path / "comment.md"
    code, out, _ = command.run(old, new, "--markdown", page, "--json")
    assert code == 0
    assert json.loads(out)["pairs"] == 65
    assert page.read_text() == command.run(old, new, "--markdown", "-")[1]
    assert page.read_text().count("Question ") == 50
    assert "- 10 more" in page.read_text()
    before = old.read_bytes()
    assert "would replace a file that is read" in command.refuses(
        old, new, "--markdown", old, code=64
    )
    assert old.read_bytes() == before


NASTY = f"{HOSTILE} @octocat #12 https://a.example www.a.com [x](javascript:y) ``` </details> $x$"


def test_no_text_of_an_answer_is_markup_in_the_comment(command: Diff) -> None:
    def named(evaluation: Evaluation) -> Evaluation:
        claims = [one.model_copy(update={"text": NASTY}) for one in evaluation.claims]
        prints = {"model": f"{evaluation.score}{NASTY}"}
        changes = {"name": NASTY, "claims": tuple(claims), "fingerprints": prints}
        return evaluation.model_copy(update=changes)

    old = command.log("old", [(f"{at}{NASTY}", named(found())) for at in range(3)])
    new = command.log("new", [(f"{at}{NASTY}", named(refuted())) for at in range(3)])
    code, out, _ = command.run(old, new, "--markdown", "-", "--fail-if", RISES, "--other-judge")
    assert code == 2
    tokens = MarkdownIt("commonmark").enable("table").parse(out)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {
        "text",
        "code_inline",
        "softbreak",
        "strong_open",
        "strong_close",
    }
    assert not any(
        sign in child.content for child in inline if child.type == "text" for sign in "@#<[$"
    )
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert {*html} == {"<details><summary>Show</summary>", "</details>"}
    assert sum(NASTY[:9] in child.content for child in inline if child.type == "code_inline") >= 8
