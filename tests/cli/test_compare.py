"""Test `demur compare`: requests, output, files, resuming, and where data sets come from."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from demur import Evaluation, Sample, Usage, cli
from demur.comparing import DETECTORS, Detector
from demur.errors import DemurError
from support.commands import flat, write_rows
from support.evaluators import Scripted, undetermined
from support.openai_server import Answer, openai_server
from support.spawned import spawned_demur
from support.waiting import NEVER

pytestmark = pytest.mark.slow

COST = Usage(calls=1, input_tokens=100, output_tokens=20, seconds=0.25)


def _rows(count: int = 20) -> list[dict[str, Any]]:
    """Return rows of which every other answer is hallucinated; two rows share a document."""
    return [
        {
            "id": f"q{at}",
            "question": f"Where is City{at}?",
            "answer": f"City{at} is in {'Spain' if at % 2 else 'France'}.",
            "contexts": [f"City{at} is a city in France."],
            "hallucinated": bool(at % 2),
            "doc": at // 2,
        }
        for at in range(count)
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", _rows())


# -- with scripted detectors -----------------------------------------------------------------------


def _knows(sample: Sample) -> Evaluation:
    right = "France" in sample.answer
    return Evaluation(name="x", score=0.9 if right else 0.1, passed=right)


def _guesses(sample: Sample) -> Evaluation:
    number = int("".join(filter(str.isdigit, sample.answer)))
    if number % 5 == 0:
        return undetermined("it cannot tell")
    return Evaluation(name="x", score=(number * 7 % 20) / 20)


def _needs_reference(sample: Sample) -> str | None:
    return None if sample.reference else "there is no reference"


def _cannot_be_made(model: Any, **options: Any) -> Any:
    raise DemurError("its weights are not here")


@pytest.fixture
def detectors(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    """Replace demur's detectors by four, two of which can be made; return those that were made."""
    made: dict[str, Scripted] = {}

    def maker(name: str, script: Any, cost: Usage) -> Callable[..., Scripted]:
        return lambda model, **options: made.setdefault(name, Scripted(script=script, cost=cost))

    known: Any = DETECTORS
    for name in [*known]:
        monkeypatch.delitem(known, name)
    for one in (
        Detector("knows", "it knows", 1, maker("knows", _knows, COST)),
        Detector("guesses", "it guesses", None, maker("guesses", _guesses, Usage())),
        Detector("reads", "it reads", 1, maker("reads", _knows, COST), _needs_reference),
        Detector("heavy", "it weighs", 1, _cannot_be_made),
    ):
        monkeypatch.setitem(known, one.name, one)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    return made


def _run(*arguments: object) -> int:
    return cli.run(["compare", "--model", "openai:x", *map(str, arguments)])


def _print(*arguments: object) -> int:
    return cli.run(["compare", *map(str, arguments)])


def test_a_detector_on_request_runs_only_if_it_is_named(
    file: Path, tmp_path: Path, detectors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Scripted(script=_knows, cost=COST)
    known: Any = DETECTORS
    by_name = Detector("asked for", "it", 1, lambda model, **options: made, on_request=True)
    monkeypatch.setitem(known, "asked for", by_name)
    _run(file, "-o", tmp_path / "all.jsonl")
    assert made.asked == []
    _run(file, "-o", tmp_path / "one.jsonl", "--method", "asked for")
    assert len(made.asked) == 20


@pytest.mark.usefixtures("told_at_once")
def test_figures_and_costs_are_printed_a_line_for_each_detector(
    file: Path, detectors: Any, capsys: Any
) -> None:
    assert _run(file, "--field", "group=doc", "--price-in", 2, "--price-out", 10) == 2
    out, err = capsys.readouterr()
    assert "20 labelled answers in 10 groups; 10 of them are hallucinated." in out
    quality, costs = _table(out, "detector"), _table(out, "per answer")
    assert quality["knows"]["AUROC"] == quality["knows"]["own F1"] == "1.000"
    assert (quality["knows"]["line"], quality["guesses"]["own F1"]) == ("●", "–")
    told = [costs["knows"][name] for name in ("answers", "calls", "tokens", "cost")]
    assert told == ["20", "1.0", "120", "0.000400"]
    assert [costs["guesses"][name] for name in ("scored", "undetermined")] == ["16", "4"]
    for text in (out, err):
        assert "left out: reads: there is no reference" in text
        assert "left out: heavy: its weights are not here" in text
    assert f"findings: {file.with_name('rows.compare.jsonl')}" in out
    assert "40 of 40" in err


def _table(out: str, head: str) -> dict[str, dict[str, str]]:
    """Return the rows under the given head, by their first cell."""
    lines = [line.split("\t") for line in out.splitlines()]
    at = next(at for at, line in enumerate(lines) if line[0] == head)
    under = takewhile(lambda line: len(line) > 1, lines[at + 1 :])
    rows = [line for line in under if len(line) == len(lines[at])]
    return {row[0]: dict(zip(lines[at], row, strict=True)) for row in rows[:2]}


def test_the_same_is_told_as_json_csv_markdown_and_a_page(
    file: Path, tmp_path: Path, detectors: Any, capsys: Any
) -> None:
    files = [tmp_path / name for name in ("a.md", "a.csv", "a.html")]
    options = zip(("--markdown", "--csv", "--html"), files, strict=True)
    assert _run(file, "--json", *(part for pair in options for part in pair)) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["results"] == str(file.with_name("rows.compare.jsonl"))
    knows, guesses = told["detectors"]
    told_of = knows["name"], knows["quality"]["auroc"]["value"], knows["on_line"]
    assert told_of == ("knows", 1.0, True)
    assert told["left_out"].keys() == {"reads", "heavy"}
    markdown, table, page = (path.read_text(encoding="utf-8") for path in files)
    (first, second) = csv.DictReader(table.splitlines())
    assert float(second["auroc"]) == guesses["quality"]["auroc"]["value"]
    assert first["tokens_per_answer"] == "120.0"
    assert "| knows | ● | 1.000 |" in markdown
    assert "<h1>Detectors compared on rows.jsonl</h1>" in page
    assert "guesses: AUROC" in page
    assert _run(file, "--markdown", "-") == 2
    assert capsys.readouterr().out == markdown


def test_it_goes_on_and_asks_nothing_twice(file: Path, detectors: Any) -> None:
    assert _run(file, "--limit", 5, "--method", "knows") == 0
    assert len(detectors["knows"].asked) == 5
    assert _run(file, "--limit", 8) == 2
    assert _run(file, "--limit", 8) == 2
    assert len(detectors["knows"].asked) == len(set(detectors["knows"].asked)) == 8
    assert len(detectors["guesses"].asked) == 8


def test_labels_may_come_from_a_file_and_rows_without_one_are_told_and_not_asked_about(
    tmp_path: Path, detectors: Any, capsys: Any
) -> None:
    rows = [{name: row[name] for name in ("id", "answer")} for row in _rows(6)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,hallucinated\n" + "".join(f"q{at},{at % 2}\n" for at in range(5)))
    assert _run(file, "--labels", labels, "--method", "knows", "--json") == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["answers"], told["hallucinated"], told["unlabelled"]) == (5, 2, 1)
    assert told["detectors"][0]["quality"]["auroc"]["value"] == 1.0
    assert len(detectors["knows"].asked) == 5
    assert "answers without a label, left out: 1" in err


# -- from findings only ----------------------------------------------------------------------------


def test_what_was_found_is_enough_to_print_it_again(
    file: Path, detectors: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(file, "--field", "group=doc", "--json") == 2
    first = json.loads(capsys.readouterr().out)
    found = file.with_name("rows.compare.jsonl")
    before = found.read_bytes()
    file.unlink()
    monkeypatch.delenv("OPENAI_API_KEY")
    asked = {name: len(one.asked) for name, one in detectors.items()}
    assert _print(found, "--json") == 2
    assert json.loads(capsys.readouterr().out) == first
    assert {name: len(one.asked) for name, one in detectors.items()} == asked
    assert found.read_bytes() == before
    # A later run that names one detector keeps the findings of the others.
    write_rows(file, _rows())
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert _run(file, "--method", "knows") == 0
    capsys.readouterr()
    assert _print(found, "--json") == 2
    again = json.loads(capsys.readouterr().out)
    assert again["left_out"] == first["left_out"]
    assert [one["name"] for one in again["detectors"]] == ["knows", "guesses"]
    assert _print(found, "--method", "knows", "--cost", "seconds") == 0
    assert "On the Pareto line of AUROC and seconds an answer: knows." in capsys.readouterr().out
    assert _print(found, "--method", "reads") == 64
    assert "holds no findings of 'reads'" in flat(capsys.readouterr().err)


def test_what_says_how_to_ask_has_no_effect_then_and_another_model_is_refused(
    file: Path, detectors: Any, capsys: Any
) -> None:
    assert _run(file, "--method", "knows") == 0
    for options in (
        ("--model", "openai:x"),
        ("--limit", "3"),
        ("--limit-expensive", "3"),
        ("--retry",),
        ("--field", "group=doc"),
    ):
        assert _print(file.with_name("rows.compare.jsonl"), *options) == 64
        said = f"Invalid value for {options[0]}: it has no effect on what was found already"
        assert said in flat(capsys.readouterr().err)
    assert _print(file, "--model", "openai:y", "--method", "knows") == 64
    assert 'model was "openai:x" and is "openai:y"' in flat(capsys.readouterr().err)
    assert _run(file, "--model", "openai:y", "--method", "knows", "--restart") == 0
    assert file.with_name("rows.compare.jsonl.bak").exists()


# -- wrong usage -----------------------------------------------------------------------------------


def test_wrong_usage_is_told_before_anything_is_asked(
    file: Path, detectors: Any, capsys: Any
) -> None:
    before = file.read_bytes()
    for options, why in (
        (("--method", "know"), "unknown detector 'know': did you mean knows? --list lists them"),
        (("--method", "reads"), "Invalid value for --method: reads: there is no reference"),
        (("--method", "heavy"), "heavy: its weights are not here"),
        (("--cost", "beauty"), "expected one of tokens, seconds, calls, money, got 'beauty'"),
        (("--price-in", "inf", "--price-out", "1"), "expected a number, got inf"),
        (("--cost", "money"), "money needs --price-in and --price-out"),
        (("--field", "colour=x"), "expected TARGET=FIELD"),
        (("--field", "hallucinated=wrong"), "it has no field 'wrong'"),
        (("--model", "nobody:x"), "unknown model 'nobody:x'"),
        (("--data", "."), "it has no effect with a file"),
        (("--markdown", file), "would replace a file that is read"),
    ):
        assert _run(file, *options) == 64
        assert why in flat(capsys.readouterr().err)
    assert _run(file.parent) == 64
    assert "is no ordinary file" in flat(capsys.readouterr().err)
    assert not any(one.asked for one in detectors.values())
    assert [*file.parent.iterdir()] == [file]
    assert file.read_bytes() == before


def test_the_list_names_all_detectors_of_the_house(capsys: Any) -> None:
    assert _print("--list") == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["detector", *DETECTORS]
    assert next(line for line in lines if line[0] == "zero-shot")[:2] == ["zero-shot", "1"]


# -- named data sets -------------------------------------------------------------------------------

_SETS = """
def rows(name, path):
    if name == "broken":
        raise ValueError("its checksum is wrong")
    if name != "cities/small":
        raise LookupError(name)
    for at in range(8):
        land = "Spain" if at % 2 else "France"
        answer = f"City{at} is in {land}."
        yield {"id": f"{path}-{at}", "answer": answer, "hallucinated": bool(at % 2)}
"""


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with two entry points, of which the first knows no data set."""
    site = tmp_path / "site"
    info = site / "fake_sets-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-sets\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[demur.data_sets]\nnone = fake_sets:nothing\nsome = fake_sets:rows\n"
    )
    nothing = "def nothing(name, path):\n    raise LookupError(name)\n"
    (site / "fake_sets.py").write_text(nothing + _SETS)
    monkeypatch.syspath_prepend(str(site))

    def only_these(group: str) -> list[EntryPoint]:
        found = entry_points(group=group)
        return [one for one in found if one.dist is not None and one.dist.name == "fake-sets"]

    monkeypatch.setattr("demur.cli.data_sets.entry_points", only_these)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "fake_sets", raising=False)


def test_the_rows_of_a_set_come_from_whoever_knows_its_name(
    tmp_path: Path, sets: None, detectors: Any, capsys: Any
) -> None:
    for _ in range(2):
        assert _run("cities/small", "--data", "here", "--method", "knows", "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["name"], told["answers"], told["hallucinated"]) == ("cities/small", 8, 4)
        assert told["results"] == "cities-small.compare.jsonl"
    assert len(detectors["knows"].asked) == 8
    keys = (tmp_path / "cities-small.compare.jsonl").read_text()
    assert '"key": "here-0"' in keys


def test_a_set_that_nobody_knows_or_has_is_told(
    tmp_path: Path, sets: None, detectors: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run("villages") == 64
    assert "there is no file 'villages', and no data set of this name" in flat(
        capsys.readouterr().err
    )
    assert _run("broken") == 64
    assert "the data set 'broken' cannot be read: its checksum is wrong" in flat(
        capsys.readouterr().err
    )
    (tmp_path / "site" / "fake_sets.py").write_text("import nowhere_at_all\n")
    monkeypatch.delitem(sys.modules, "fake_sets")
    assert _run("cities/small") == 2
    said = "fake_sets:nothing, which offers data sets, is broken: No module named"
    assert said in flat(capsys.readouterr().err)
    monkeypatch.setattr("demur.cli.data_sets.entry_points", lambda group: ())
    assert _run("chale") == 64
    err = flat(capsys.readouterr().err)
    assert "there is no file 'chale'" in err
    assert "pip install demur-research" in err


# -- with demur's detectors and a model ------------------------------------------------------------

_METHODS = ("floor-contexts", "all-false", "zero-shot", "refchecker-sentences-joint")


def _asked_about(request: dict[str, Any]) -> str:
    return re.findall(r"City\d+", json.dumps(request["messages"]))[-1]


def _reply(request: dict[str, Any]) -> str:
    text = json.dumps(request["messages"])
    wrong = "Spain" in text.rpartition("France")[0] + text.rpartition("France")[2]
    if "Entailment" in text:
        last = request["messages"][-1]["content"]
        return "1. Contradiction" if "Spain" in last else "1. Entailment"
    return "non-factual" if wrong else "factual"


@pytest.mark.smoke
@pytest.mark.skipif(os.name == "nt", reason="signals are others on Windows")
def test_killed_in_the_middle_it_goes_on_where_it_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    asked: Counter[str] = Counter()
    killed = threading.Event()

    def script(request: dict[str, Any], number: int) -> Answer:
        asked[_asked_about(request)] += 1
        return Answer(_reply(request), held=None if number < 12 or killed.is_set() else NEVER)

    methods = [part for name in _METHODS for part in ("--method", name)]
    command = ["compare", str(file), "--model", "openai:x", "--max-concurrency", "2", *methods]
    with openai_server(script) as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        process = spawned_demur(tmp_path, *command, **environment)
        server.arrived(14)
        process.signal(signal.SIGKILL)
        assert process.end() == -signal.SIGKILL
        killed.set()
        found = file.with_name("rows.compare.jsonl")
        before = found.read_bytes()
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert cli.run([*command, "--json"]) == 0
    assert found.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    lines = [json.loads(line) for line in found.read_text().splitlines()[1:]]
    findings = Counter((line["key"], line["evaluator"]) for line in lines if "key" in line)
    assert set(findings.values()) == {1}
    assert len(findings) == 20 * len(_METHODS)
    # Of the two rows under way, at most one call each is repeated.
    assert sum(asked.values()) <= 2 * 20 + 2
    told = json.loads(capsys.readouterr().out)
    figures = {one["name"]: one for one in told["detectors"]}
    assert {name: one["quality"]["auroc"]["value"] for name, one in figures.items()} == {
        "floor-contexts": 1.0,
        "all-false": 0.5,
        "zero-shot": 1.0,
        "refchecker-sentences-joint": 1.0,
    }
    assert [name for name, one in figures.items() if one["on_line"]] == ["floor-contexts"]
    assert figures["zero-shot"]["cost"]["calls"] == 1.0
    assert figures["zero-shot"]["cost"]["tokens"] > 0
    assert figures["all-false"]["quality"]["own_balanced_accuracy"]["value"] == 0.5
