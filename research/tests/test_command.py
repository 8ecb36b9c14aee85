"""`demur-bench`: tables, JSON, and what it says of files that do not fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import convert_to_messages

from demur_research.commands import run
from publishers import as_lines, biographies, dump, published, say
from support.fakes import isolated, stage_of
from support.openai_server import Answer, OpenAIServer, openai_server


def test_phd_prints_a_row_for_each_method_matcher_and_domain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = published(tmp_path)
    code = run(["phd", "--data", str(data), "--records", str(records), "--json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    rows = json.loads(out)
    (one,) = [
        row
        for row in rows
        if (row["method"], row["matcher"], row["domain"]) == ("em", "published_em", "all")
    ]
    assert [one[name] for name in ("tp", "fp", "fn", "tn")] == [2, 0, 1, 2]
    assert (one["precision"], one["f1"]) == (100.0, 80.0)
    assert one["recall"] == pytest.approx(200 / 3)
    assert one["f1_over_published"] is None
    assert len({(row["method"], row["matcher"], row["domain"]) for row in rows}) == len(rows) == 44


def test_in_a_pipe_the_table_has_tabs_and_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = published(tmp_path)
    arguments = ["phd", "--data", str(data), "--records", str(records)]
    assert run([*arguments, "--matcher", "exact", "--percentage", "80"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert {line.count("\t") for line in lines} == {head.count("\t")}
    assert lines[4].split("\t")[:7] == ["em", "exact", "all", "2", "0", "1", "2"]


def test_selfcheck_is_judged_where_a_threshold_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = as_lines(tmp_path)
    arguments = ["phd", "--data", str(data), "--records", str(records), "--json"]
    assert run([*arguments, "--selfcheck-threshold", "0.1"]) == 0
    methods = {row["method"] for row in json.loads(capsys.readouterr().out)}
    assert "selfcheck-bertscore" in methods
    assert run(arguments) == 0
    methods = {row["method"] for row in json.loads(capsys.readouterr().out)}
    assert methods == {"qg", "em", "all-false", "lmvslm", "zero-shot"}


def test_wikibio_prints_shares_and_tells_what_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, records = biographies(tmp_path)
    where = records / "wiki_bio_qg_record.json"
    rows = json.loads(where.read_text(encoding="utf-8"))
    dump(where, [*rows, {**rows[0], "entity": "Else ", "claim": "Else."}])
    arguments = ["wikibio", "--data", str(data), "--records", str(records)]
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    (one,) = [row for row in json.loads(out) if row["matcher"] == "wikibio_name"]
    assert (one["passages"], one["rejected"], one["min_ratio"]) == (3, 2, 25.0)
    assert "1 of 4 passages have no record" in err
    assert "1 records are of passages that the data lacks: Else" in err
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "qg\twikibio_name\t3\t2\t66.67\t" in out


def test_the_table_fits_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "240")
    data, records = published(tmp_path)
    assert run(["phd", "--data", str(data), "--records", str(records)]) == 0
    out = capsys.readouterr().out
    assert "\t" not in out
    assert "published_qg" in out


@pytest.mark.parametrize(
    ("data", "records", "extra", "option", "told"),
    [
        ("none.json", ".", [], "--data", "cannot read"),
        ("bad.json", ".", [], "--data", "is not JSON"),
        ("list.json", ".", [], "--data", "row 1, id: Field required"),
        ("PHD_benchmark.json", "none", [], "--records", "cannot read"),
        ("PHD_benchmark.json", "empty", [], "--records", "holds no records"),
        ("PHD_benchmark.json", "list.json", [], "--records", "expected an id, or an entity"),
        ("PHD_benchmark.json", ".", ["--matcher", "x"], "--matcher", "expected one of exact"),
        ("PHD_benchmark.json", ".", ["--percentage", "101"], "--percentage", "100"),
    ],
    ids=["no file", "no JSON", "form", "no records", "folder", "record", "matcher", "range"],
)
def test_what_is_wrong_is_told_with_the_option(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    data: str,
    records: str,
    extra: list[str],
    option: str,
    told: str,
) -> None:
    published(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    dump(tmp_path / "list.json", [{"entity": "A", "answer": "A"}])
    arguments = ["--data", str(tmp_path / data), "--records", str(tmp_path / records)]
    assert run(["phd", *arguments, *extra]) == 64
    out, err = capsys.readouterr()
    assert out == ""
    said = " ".join(err.replace("│", " ").split())
    assert option in said
    assert told in said


def test_bench_alone_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 64
    err = capsys.readouterr().err
    assert "phd" in err
    assert "wikibio" in err


# -- record ----------------------------------------------------------------------------------------


def _reply(request: dict[str, Any], number: int) -> str:
    messages = convert_to_messages(request["messages"])
    return say(stage_of(messages), messages)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(_reply) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def _record(data: Path, out: Path, *options: str) -> int:
    told = ["--data", str(data), "-o", str(out), "--model", "openai:x", *options]
    return run(["record", *told])


def _rows(data: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["phd", "--data", str(data), "--records", str(out), "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_what_is_recorded_is_put_side_by_side(
    tmp_path: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (data, records), out = published(tmp_path), tmp_path / "out.jsonl"
    assert _record(data, out) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert f"judging, {out}: 25 of 25" in " ".join(told.err.split())
    rows = _rows(data, out, capsys)
    assert len(rows) == 4 * (4 + 4 + 3)
    live = {(row["method"], row["matcher"], row["domain"]): row for row in rows}
    # The same replies by the same decisions: as from the publishers' records.
    for row in _rows(data, records, capsys):
        key = row["method"], row["matcher"], row["domain"]
        if row["matcher"] != "llm":
            spent = {"tokens": row["tokens"], "seconds": row["seconds"]}
            assert {**live[key], **spent} == row, key
    assert live["all-false", None, "all"]["tokens"] == 0
    assert live["qg", "exact", "low"]["seconds"] > 0
    assert live["em", "exact", "all"]["tokens"] > live["qg", "exact", "all"]["tokens"]
    (first,) = {row["tokens"] for row in rows if row["method"] == "zero-shot"}
    assert first > 0
    assert run(["phd", "--data", str(data), "--records", str(out)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    cells = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    (shown,) = {one["tokens"] for one in cells if one["method"] == "zero-shot"}
    assert shown == f"{first:.0f}"
    arguments = ["phd", "--data", str(data), "--records", str(out)]
    assert run([*arguments, "--selfcheck-threshold", "0.1"]) == 64
    assert "--selfcheck-threshold" in capsys.readouterr().err


def test_the_same_command_goes_on(
    tmp_path: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (data, _), out = published(tmp_path), tmp_path / "out.jsonl"
    assert _record(data, out, "--method", "zero-shot", "--passages", "3") == 0
    assert len(server.requests) == 3
    assert {row["missing"] for row in _rows(data, out, capsys)} == {0}
    with out.open("ab") as torn:
        torn.write(b'{"item": "')
    assert _record(data, out, "--method", "zero-shot", "--method", "qg") == 0
    assert "not whole: 10 bytes cut" in " ".join(capsys.readouterr().err.split())
    asked = [stage_of(convert_to_messages(one["messages"])) for one in server.requests]
    assert Counter(asked) == {"verdict": 5, "construction": 5, "access": 5}
    assert len(out.read_text(encoding="utf-8").splitlines()) == 10


def test_passages_that_a_method_has_not_judged_are_missing_in_its_rows(
    tmp_path: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (data, _), out = published(tmp_path), tmp_path / "out.jsonl"
    assert _record(data, out, "--method", "all-false", "--passages", "4") == 0
    assert _record(data, out, "--method", "zero-shot", "--passages", "1") == 0
    rows = [row for row in _rows(data, out, capsys) if row["domain"] == "all"]
    assert {row["method"]: row["missing"] for row in rows} == {"all-false": 0, "zero-shot": 3}
    assert all(sum(row[one] for one in ("tp", "fp", "fn", "tn", "missing")) == 4 for row in rows)


def test_a_model_that_was_away_is_asked_again_with_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    away = [True]

    def script(request: dict[str, Any], number: int) -> Answer | str:
        iron = "Iron" in isolated("passage", convert_to_messages(request["messages"]))
        return Answer("no key", status=401) if iron and away[0] else _reply(request, number)

    def undetermined() -> int:
        rows = {row["domain"]: row["undetermined"] for row in _rows(data, out, capsys)}
        assert (rows["all"], rows["low"]) == (rows["high"], 0)
        count: int = rows["all"]
        return count

    (data, _), out = published(tmp_path), tmp_path / "out.jsonl"
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert _record(data, out, "--method", "zero-shot") == 0
        assert undetermined() == 1
        away[0] = False
        assert _record(data, out, "--method", "zero-shot") == 0
        assert (undetermined(), len(server.requests)) == (1, 5)
        assert _record(data, out, "--method", "zero-shot", "--retry") == 0
        assert (undetermined(), len(server.requests)) == (0, 6)


@pytest.mark.parametrize(
    ("options", "option", "told"),
    [
        (["--method", "guess"], "--method", "expected one of qg, em, zero-shot, lmvslm, all-false"),
        (["--model", "guess"], "--model", "unknown model 'guess'"),
        (["--data", "none.json"], "--data", "cannot read none.json"),
        (["--passages", "0"], "--passages", "1"),
        (["-o", "none/out.jsonl"], "--out", "cannot write none/out.jsonl"),
        (["-o", "."], "--out", "is a directory"),
        (["-o", "notes.txt"], "--out", "notes.txt is there and is no recording"),
        (["-o", "other.jsonl"], "--out", "was asked, and not ChatOpenAI x"),
    ],
    ids=["method", "model", "data", "passages", "folder", "directory", "notes", "other"],
)
def test_what_is_wrong_is_told_before_anything_is_asked(
    tmp_path: Path,
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    option: str,
    told: str,
) -> None:
    data, _ = published(tmp_path)
    monkeypatch.chdir(tmp_path)
    notes, other = Path("notes.txt"), Path("other.jsonl")
    notes.write_text("Buy milk", encoding="utf-8")
    assert _record(data, other, "--method", "all-false", "--model", "openai:y") == 0
    before = other.read_bytes()
    capsys.readouterr()
    assert _record(data, Path("out.jsonl"), *options) == 64
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert option in said
    assert told in said
    assert server.requests == []
    assert (notes.read_text(encoding="utf-8"), other.read_bytes()) == ("Buy milk", before)
    assert not Path("out.jsonl").exists()


def test_a_recording_of_other_passages_is_told(
    tmp_path: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (data, _), out = published(tmp_path), tmp_path / "out.jsonl"
    assert _record(data, out, "--method", "all-false") == 0
    row = {"id": "else", "entity": "A", "passage": "B", "domain": "low", "label": "factual"}
    other = dump(tmp_path / "other.jsonl", [row])
    assert run(["phd", "--data", str(other), "--records", str(out)]) == 64
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "nothing in it is about a passage of the data" in said
    key = json.loads(out.read_text(encoding="utf-8").splitlines()[0])["item"]
    dump(other, [{**row, "id": key}])
    assert run(["phd", "--data", str(other), "--records", str(out)]) == 64
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert f"{key} says something else in the data" in said
