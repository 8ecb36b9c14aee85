"""Test that a table is a command: it records, resumes, is remade without a model, and is shown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demur import Sample
from demur.evaluators import AllFalse, ZeroShot
from demur.schema import Share
from demur_research.bench import Bench, Column, Figure, Result, Row, Table, mean_cost
from demur_research.commands import app, run
from demur_research.commands.tables import command
from demur_research.datasets import DATA_SETS
from publishers import as_lines
from support.fakes import ScriptedModel


def _make(bench: Bench) -> Result:
    rows = list(bench.read("phd"))[: bench.limit]
    samples = [Sample(answer=row.answers[0].text) for row in rows]
    done = bench.judged("judging", ZeroShot(bench.model), samples)
    decided = [one.value for one in done if not one.value.undetermined]
    rejected = Share(sum(one.passed is False for one in decided), len(decided))
    floor = [AllFalse().invoke(sample) for sample in samples]
    return Result(
        (Column("rejected, %"), Column("nothing", 3)),
        (
            Row(
                "zero-shot",
                (Figure.of_share(rejected, bench.options.get("paper", "")), None),
                items=len(decided),
                undetermined=len(done) - len(decided),
                spent=mean_cost(done),
            ),
            Row("all | false", (Figure(100.0 * len(floor) / len(rows)), Figure(0.5)), floor=True),
            Row("people", (Figure(90.0), None), items=len(rows)),
        ),
        ("A note.",),
    )


TABLE = Table(
    "small", "the paper, Table 9", "How many are rejected.", ("phd",), _make, options={"paper": "x"}
)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    def script(stage: str, messages: Any) -> str:
        return "non-factual" if "Iron" in str(messages[-1].content) else "factual"

    made = ScriptedModel(script=script)
    monkeypatch.setattr("demur_research.bench.resolve_model", lambda name: made)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "phd").mkdir()
    as_lines(tmp_path / "phd")
    return tmp_path


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Register the table as a command for one test."""
    app.command(TABLE.name)(command(TABLE))
    yield
    app.registered_commands.pop()


def _run(data: Path, *options: str) -> int:
    recording = str(data / "calls.jsonl")
    return run(["small", "--data", str(data), "-r", recording, *options])


def test_a_replay_that_decides_nothing_for_lack_of_replies_is_an_error(
    data: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _run(data) == 0
    others = tmp_path / "others"
    (others / "phd").mkdir(parents=True)
    text = (data / "phd" / "phd.jsonl").read_text(encoding="utf-8")
    (others / "phd" / "phd.jsonl").write_text(text.replace("is known", "is seen"), encoding="utf-8")
    capsys.readouterr()
    recording = str(data / "calls.jsonl")
    assert run(["small", "--data", str(others), "-r", recording, "--replay"]) == 64
    streams = capsys.readouterr()
    said = " ".join(streams.err.replace("│", " ").split())
    assert "nothing could be decided" in said
    assert "lacks 5 replies or vectors" in said
    assert "replies that it holds: 5 of local" in said
    assert streams.out == ""


def test_markdown_has_the_paper_beside_the_floor_marked_and_what_the_data_cannot_show(
    data: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(data, "--format", "markdown", "-O", "paper=26.0") == 0
    out = capsys.readouterr().out
    head, _, *lines = (line for line in out.splitlines() if line.startswith("|"))
    assert head == (
        "| row | rejected, % | the paper | nothing | items | calls an item | tokens an item | "
        "seconds an item |"
    )
    assert lines[0].startswith("| zero-shot | 20.0 [3.6, 62.4] | 26.0 | - | 5 | 1.0 | - | ")
    assert lines[1] == "| all \\| false (floor) | 100.0 | - | 0.500 | - | - | - | - |"
    assert "|\n\n- A note.\n- PHD: 5 rows" in out
    assert DATA_SETS["phd"].cannot_show in out
    assert "(the paper, Table 9)" in out


def test_comma_separated_values_hold_each_bound_by_itself(
    data: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(data, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["row"] for row in rows] == ["zero-shot", "all | false", "people"]
    assert float(rows[0]["rejected, %"]) == 20.0
    assert float(rows[0]["rejected, %, low"]) < 20.0 < float(rows[0]["rejected, %, high"])
    assert rows[1]["floor"] == "True"
    assert rows[1]["rejected, %, low"] == ""
