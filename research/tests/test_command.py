"""Test `demur-bench`: a table's command prints, records, replays, and reports what does not fit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import convert_to_messages

from demur_research.commands import run
from publishers import biographies, published, say
from support.fakes import stage_of
from support.openai_server import OpenAIServer, openai_server

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the data sets, with the lists of records beside each data set."""
    monkeypatch.chdir(tmp_path)
    for name, make in {"phd": published, "wikibio_gpt3": biographies}.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name)
    return tmp_path


def table(capsys: Capture, *arguments: str) -> dict[str, Any]:
    """Return what a command prints as JSON."""
    capsys.readouterr()
    assert run([*arguments, "--format", "json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def row(told: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [row for row in told["rows"] if row["row"] == name]
    return dict(found)


def said(capsys: Capture) -> str:
    """Return the text on standard error, without the frame around it."""
    return " ".join(capsys.readouterr().err.replace("│", " ").split())


# -- from files alone ------------------------------------------------------------------------------


def test_a_table_finds_its_data_and_the_records_beside_them(data: Path, capsys: Capture) -> None:
    told = table(capsys, "rv-table-4", "--data", str(data))
    assert told["columns"] == ["rejected, %", "least share of wrong sentences of those, %"]
    found = row(told, "qg, wikibio_name")
    assert (found["items"], found["undetermined"], found["spent"]) == (3, 0, None)
    share, least = found["figures"]
    assert (share["value"], least["value"]) == (pytest.approx(200 / 3), 25.0)
    assert (share["paper"], least["paper"]) == ("74.2", "10.0")
    assert row(told, "all false")["floor"]
    assert "1 of 4 passages have no record." in told["notes"]
    assert not (data / "demur-bench.jsonl").exists()


def test_in_a_pipe_the_table_has_tabs_and_says_what_its_data_cannot_show(
    data: Path, capsys: Capture
) -> None:
    assert run(["rv-table-1", "--data", str(data)]) == 0
    title, head, *rows = capsys.readouterr().out.splitlines()
    assert title.startswith("Reverse Validation, Table 1: ")
    assert {line.count("\t") for line in rows[:3]} == {head.count("\t")}
    assert rows[0].split("\t")[:5] == ["PHD-High", "0", "86", "2", "14"]
    assert rows[-1].startswith("PHD: 5 rows of 300")


def test_the_list_of_tables_says_why_one_cannot_be_run(capsys: Capture) -> None:
    assert run(["tables"]) == 0
    out = capsys.readouterr().out
    assert "rv-table-3\tReverse Validation, Table 3\t" in out
    assert "-\tReverse Validation, Table 7\t" in out
    assert "Not run: They are cases of the tests." in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rv-table-1", "--data", "bad.json"], "is not JSON"),
        (["rv-table-1", "-O", "percentage=80"], "with a name of none, got 'percentage=80'"),
        (["rv-table-4", "-O", "percentage"], "expected NAME=VALUE"),
        (["rv-table-4", "-O", "records=empty"], "holds no records of chatgpt"),
        (["rv-live", "-O", "methods=guess"], "methods: expected"),
        (["rv-live", "-r", "none/out.jsonl"], "there is no folder none"),
        (["rv-live", "-r", "notes.txt"], "is no recording"),
        (["rv-live", "--replay"], "there is no recording demur-bench.jsonl"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_printed(
    data: Path, capsys: Capture, arguments: list[str], told: str
) -> None:
    (data / "empty").mkdir()
    (data / "bad.json").write_text("{", encoding="utf-8")
    (data / "notes.txt").write_text("Buy milk", encoding="utf-8")
    assert run([arguments[0], "--data", str(data), *arguments[1:]]) == 64
    streams = capsys.readouterr()
    assert streams.out == ""
    assert told in " ".join(streams.err.replace("│", " ").split())
    assert (data / "notes.txt").read_text(encoding="utf-8") == "Buy milk"


# -- with a model ----------------------------------------------------------------------------------


def _reply(request: dict[str, Any], number: int) -> str:
    messages = convert_to_messages(request["messages"])
    return say(stage_of(messages), messages)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with openai_server(_reply) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def live(data: Path, *options: str, methods: str = "qg,zero-shot") -> list[str]:
    told = ["--data", str(data), "--model", "openai:x", "-O", f"methods={methods}"]
    return ["rv-live", *told, *options]


@pytest.mark.smoke
def test_what_is_recorded_is_shown_again_without_a_model(
    data: Path, server: OpenAIServer, capsys: Capture
) -> None:
    first = table(capsys, *live(data))
    asked = len(server.requests)
    assert asked > 0
    assert table(capsys, *live(data), "--replay") == first
    assert len(server.requests) == asked
    spent = row(first, "zero-shot")["spent"]
    assert (spent["calls"], spent["tokens"] > 0, spent["seconds"] > 0) == (1, True, True)
    # The same replies lead to the same decisions as in the publishers' records.
    records = table(capsys, "rv-table-3", "--data", str(data), "-r", "vectors.jsonl")
    own, recorded = (row(told, "qg, published_qg") for told in (first, records))
    assert own["figures"][0]["value"] == recorded["figures"][0]["value"]


def test_the_same_command_goes_on(data: Path, server: OpenAIServer, capsys: Capture) -> None:
    assert run(live(data, "--limit", "3", methods="zero-shot")) == 0
    assert len(server.requests) == 3
    with (data / "demur-bench.jsonl").open("ab") as torn:
        torn.write(b'{"line":"ca')
    capsys.readouterr()
    assert run(live(data, "--limit", "4", methods="zero-shot")) == 0
    assert "torn line: 11 bytes were removed" in said(capsys)
    asked = [stage_of(convert_to_messages(one["messages"])) for one in server.requests]
    assert Counter(asked) == {"verdict": 4}


def test_a_recording_of_another_model_is_left_alone(
    data: Path, server: OpenAIServer, capsys: Capture
) -> None:
    assert run(live(data, "--limit", "1", methods="zero-shot")) == 0
    before = (data / "demur-bench.jsonl").read_bytes()
    other = ["rv-live", "--data", str(data), "--model", "openai:y", "--replay"]
    capsys.readouterr()
    assert run(other) == 64
    assert "no replies of the model 'openai:y' (it holds: openai:x)" in said(capsys)
    assert (data / "demur-bench.jsonl").read_bytes() == before
