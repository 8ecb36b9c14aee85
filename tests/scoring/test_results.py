"""Test the file of results: what may be torn, what is refused, and who owns it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from demur import DemurError
from demur.scoring import Data, Run, ScoringError
from support.evaluators import Scripted
from support.scoring import keys, length, rows, run_on


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return rows(tmp_path / "rows.jsonl", 20)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "scores.jsonl"


def test_the_last_line_may_be_torn_anywhere(data: Data, out: Path) -> None:
    run_on(data, out)
    whole = out.read_bytes()
    first = whole.index(b"\n") + 1
    cuts = random.sample(range(len(whole)), 5)
    for size in [0, 1, first - 1, first, first + 1, len(whole) - 1, *cuts]:
        out.write_bytes(whole[:size])
        kept = max(whole[:size].count(b"\n") - 1, 0)
        again = Scripted(script=length)
        cut = run_on(data, out, {"len": again}, do=lambda run: (run.score(), run.results.cut)[1])
        assert len(again.asked) == 20 - kept
        assert cut == size - (whole[:size].rfind(b"\n") + 1)
        assert keys(out) == {(f"q{row}", "len"): 1 for row in range(20)}
        assert out.read_bytes().splitlines()[: kept + 1] == whole.splitlines()[: kept + 1]


# -- what is refused -------------------------------------------------------------------------------


def _refused(data: Data, out: Path, **options: Any) -> str:
    evaluator = Scripted(script=length)
    before = out.read_bytes() if out.exists() else None
    with pytest.raises(ScoringError) as refused:
        run_on(data, out, {"len": evaluator}, **options)
    assert evaluator.asked == []
    assert (out.read_bytes() if out.exists() else None) == before
    return str(refused.value)


def test_other_settings_and_other_input_are_refused_with_what_differs(
    data: Data, out: Path
) -> None:
    assert "is the input itself" in _refused(data, data.path, restart=True)
    for content in (b"my notes", b'{"answer": "a"}\n', b'"demur_scores"\n', b"\0\0\0\0"):
        out.write_bytes(content)
        assert "no results of demur score" in _refused(data, out)
    out.unlink()
    run_on(data, out)
    other = Data(data.path, data.name, fields={"answer": "question"})
    assert 'field answer was not given and is "question"' in _refused(other, out)
    settings = {"method": "scripted", "n": {"wrong": 5}, "new": True}
    said = _refused(data, out, settings=settings)
    assert "n wrong was 25 and is 5" in said
    assert "new was not given and is true" in said
    assert "method" not in said
    assert "--restart" in said
    with data.path.open("a") as file:
        file.write('{"answer": "one more"}\n')
    assert "other content" in _refused(data, out)


def test_restarting_keeps_what_was_there(data: Data, out: Path) -> None:
    run_on(data, out)
    first = out.read_bytes()
    for suffix in (".bak", ".bak2"):
        aside = run_on(
            data,
            out,
            settings={"method": "other"},
            restart=True,
            do=lambda run: (run.score(), run.results.aside)[1],
        )
        assert aside == out.with_name(out.name + suffix)
    assert out.with_name(out.name + ".bak").read_bytes() == first
    assert len(keys(out)) == 20


def test_a_line_in_the_midst_that_is_no_finding_is_named(data: Data, out: Path) -> None:
    run_on(data, out)
    lines = out.read_bytes().splitlines(keepends=True)
    for bad in (b"{}\n", b"\0\0\n", lines[3].replace(b'"error": null', b'"error": "x"')):
        out.write_bytes(b"".join([*lines[:3], bad, *lines[4:]]))
        assert "line 4 is no finding" in _refused(data, out)


def test_two_runs_on_one_file_are_refused(data: Data, out: Path) -> None:
    evaluator = Scripted(script=length)

    def another(run: Run) -> None:
        with pytest.raises(ScoringError, match="another run writes"):
            run_on(data, out, {"len": evaluator})
        with pytest.raises(ScoringError, match="another run writes"):
            run_on(data, out, {"len": evaluator}, restart=True)
        run.score()

    run_on(data, out, do=another)
    assert evaluator.asked == []
    assert len(keys(out)) == 20
    run_on(data, out)  # The lock has been released.


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"answer": "a"}', "nonsense"], ["rows.jsonl, line 2: it is not JSON"]),
        (
            ['{"id": "a", "answer": "x"}', "", '{"id": "a", "answer": "y"}'],
            ["line 3: id: 'a' is on line 1 already"],
        ),
        (
            ['{"id": "a:b", "answer": "x"}', '{"id": "a", "answers": {"b": "y"}}'],
            ["line 2: id: 'a:b' is on line 1 already"],
        ),
        (["{}"] * 8, ["line 1: ", "line 5: ", "and 3 more such lines"]),
        ([""], ["has no rows"]),
    ],
)
def test_all_rows_are_read_before_the_first_is_scored(
    tmp_path: Path, out: Path, lines: Sequence[str], said: Sequence[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines) + "\n")
    message = _refused(Data(path, path.name), out)
    assert all(part in message for part in said)
    assert "line 6" not in message


def test_a_disk_that_is_full_ends_the_run_with_a_reason(data: Data, out: Path) -> None:
    resource = pytest.importorskip("resource", reason="the system knows no limits of files")
    run_on(data, out)
    eleven = b"".join(out.read_bytes().splitlines(keepends=True)[:11])
    out.unlink()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Past the limit, a part of a line is written and then nothing more, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(eleven) + 90, before[1]))
    try:
        with pytest.raises(DemurError, match=r"cannot write .*scores.jsonl: File too large"):
            run_on(data, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    found = len(keys(out))
    assert 8 <= found < 20
    again = Scripted(script=length)
    cut = run_on(data, out, {"len": again}, do=lambda run: (run.score(), run.results.cut)[1])
    assert cut == 0
    assert len(again.asked) == 20 - found
    assert keys(out) == {(f"q{row}", "len"): 1 for row in range(20)}
