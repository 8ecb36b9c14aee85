"""Test that damaged files are read as far as they are intact, and never end in a traceback.

Commands name the damaged parts. These tests try only a few mutations: `ROUNDS` says how many.
Another seed, or a larger number, tries others.
"""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from demur import Sample, Usage, cli
from demur.observe import Record
from demur.observe.log import open_log, records
from demur.observe.log import summarise as totals
from demur.scoring import Data, ScoringError, read_input, summarise
from support.damage import damaged_bytes, damaged_line
from support.logs import RUNS
from support.records import jsonl, scored, sqlite
from support.scoring import rows, run_on

ROUNDS = 5
SOME = RUNS[::15]
READERS: tuple[tuple[str, ...], ...] = (
    ("log list",),
    ("log summary",),
    ("log summary", "--json"),
    ("log worst", "-n", "50"),
    ("log export", "OUT.csv"),
    ("report", "-o", "OUT.html"),
    ("calibrate", "--percentile", "5", "--evaluator", "RefChecker", "-o", "OUT.json"),
)
READS, UNREADABLE = 0, 2
LAST = scored(at=50)


@pytest.fixture(autouse=True)
def _nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda picture: "")


def _read(file: Path, reader: tuple[str, ...], capsys: Any) -> tuple[int, str, str]:
    """Run a command on a file, which must not crash; return its exit code, stdout and stderr."""
    for old in file.parent.glob("OUT.*"):
        old.unlink()
    command, *options = (one.replace("OUT", str(file.parent / "OUT")) for one in reader)
    code = cli.run([*command.split(), str(file), *options])
    out, err = capsys.readouterr()
    assert code != 70, err
    assert "Traceback" not in err
    return code, out, err


def _trace(run: Record) -> bytes:
    kept = ("attempts", "usage", "time", "seconds")
    trace = {name: value for name, value in json.loads(run.as_json()).items() if name in kept}
    return json.dumps({**trace, "outcome": "passed", "reason": "", "limit": None}).encode() + b"\n"


# -- mutations -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("as_traces", [False, True], ids=["records", "traces"])
def test_of_a_log_of_lines_all_but_the_damaged_one_are_read(
    as_traces: bool, tmp_path: Path, capsys: Any
) -> None:
    file = tmp_path / "a.log"
    whole = [_trace(run) if as_traces else run.as_json().encode() + b"\n" for run in SOME]
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        at = chance.randrange(len(whole))
        line = damaged_line(whole[at], chance) + b"\n"
        file.write_bytes(b"".join([*whole[:at], line, *whole[at + 1 :]]))
        code, out, err = _read(file, ("log list", "--json", "-n", "999"), capsys)
        assert code == READS, (seed, err)
        read = [Record.model_validate_json(one) for one in out.splitlines()]
        answers = [run.attempts for run in read]
        # The mutation may have left record `at` intact, so the number of records is not checked.
        assert all(run.attempts in answers for run in SOME if run is not SOME[at]), seed
        if len(read) < len(SOME):
            assert f"{file}, " in err
            assert "is left out: " in err
            assert err.count("\n") == 1
        code, _, err = _read(file, chance.choice(READERS), capsys)
        assert code == READS, (seed, err)


@pytest.mark.slow
def test_a_damaged_database_is_read_or_one_clear_error(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "a.sqlite"
    whole = sqlite(file, SOME).read_bytes()
    codes = set()
    for seed in range(2 * ROUNDS):
        chance = random.Random(seed)
        file.write_bytes(damaged_bytes(whole, chance))
        for reader in (("log list", "--json", "-n", "999"), chance.choice(READERS)):
            code, _, err = _read(file, reader, capsys)
            assert code in (READS, UNREADABLE), (seed, reader, err)
            codes.add(code)
            if code == UNREADABLE:
                assert err.splitlines()[-1].startswith("demur:  ")
    assert codes == {READS, UNREADABLE}


def test_of_the_rows_to_be_scored_the_damaged_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    context = {"page_content": "text", "metadata": {"source": "s"}, "id": "1"}
    row = {"question": "Q?", "answer": "A.", "contexts": ["text", context], "metadata": {"a": [1]}}
    whole = [json.dumps({"id": f"q{at}", **row}).encode() + b"\n" for at in range(5)]
    for seed in range(5 * ROUNDS):
        chance = random.Random(seed)
        at = chance.randrange(len(whole))
        line = damaged_line(whole[at], chance) + b"\n"
        file.write_bytes(b"".join([*whole[:at], line, *whole[at + 1 :]]))
        said = ""
        try:
            with read_input(Data(file, "rows")) as read:
                assert len([*read.data.rows()]) >= len(whole) - 1
        except ScoringError as error:
            said = str(error)
        assert not said or said.startswith(f"rows, line {at + 1}: ") or "is on line" in said
        assert "\n" not in said


@pytest.mark.slow
def test_of_the_results_the_damaged_line_is_named(tmp_path: Path, capsys: Any) -> None:
    data, file, labels = rows(tmp_path / "r.jsonl", 6), tmp_path / "s.jsonl", tmp_path / "l.csv"
    labels.write_text("id,hallucinated\n" + "".join(f"q{at},{1 - at % 2}\n" for at in range(6)))
    run_on(data, file)
    whole = file.read_bytes().splitlines(keepends=True)
    for seed in range(2 * ROUNDS):
        chance = random.Random(seed)
        at = chance.randrange(len(whole))
        line = damaged_line(whole[at], chance) + b"\n"
        file.write_bytes(b"".join([*whole[:at], line, *whole[at + 1 :]]))
        options = ("--labels", str(labels), "--best-f1", "-o", "OUT.json")
        code, _, err = _read(file, ("calibrate", *options), capsys)
        if "is no finding" in err:
            assert (code, f"line {at + 1} is no finding" in err) == (UNREADABLE, True)
        said = str(file)
        try:
            run_on(data, file, do=lambda run: summarise(run.ledger, run.evaluators))
        except ScoringError as error:
            said = str(error)
        assert str(file) in said


# -- single kinds of damage ------------------------------------------------------------------------


def _spoiled(**fields: Any) -> str:
    """Return the JSON of a record with these fields of its first attempt replaced."""
    value = json.loads(LAST.as_json())
    value["attempts"][0].update(fields)
    return json.dumps(value)


DAMAGED = {
    "no page_content": (_spoiled(contexts=[{"metadata": {}}]), "attempts.0.contexts"),
    "a document of nothing": (_spoiled(contexts=[{}]), "attempts.0.contexts"),
    "no attempt": (_spoiled().replace('"attempts": [', '"attempts": [], "more": ['), "attempts"),
    "deep": ('{"id": ' + "[" * 10_000 + "]" * 10_000 + "}", "recursion"),
    "endless": (_spoiled().replace('"seconds": ', '"seconds": 1e999, "s": ', 1), ""),
    "beyond the calendar": (
        json.dumps({**json.loads(_spoiled()), "time": "0001-01-01T00:00:00+14:00"}),
        "time",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "case"),
    [*((jsonl, case) for case in DAMAGED), (sqlite, "deep"), (sqlite, "no attempt")],
)
def test_one_record_spoils_no_other(form: Any, case: str, tmp_path: Path, capsys: Any) -> None:
    text, why = DAMAGED[case]
    file = form(tmp_path / "a.log", SOME)
    if form is jsonl:
        place = f"line {len(SOME) + 1}"
        with file.open("a") as log:
            log.write(text + "\n")
    else:
        sqlite(file, [LAST])
        place = f"run {LAST.id}"
        with sqlite3.connect(file) as database:
            database.execute("update records set record = ? where id = ?", (text, LAST.id))
        database.close()
    for reader in (("log list", "--json", "-n", "999"), READERS[-1]):
        code, out, err = _read(file, reader, capsys)
        assert code == READS
        told = " ".join((out + err).split())
        assert place in told
        assert why in told


def test_a_document_with_foreign_keys_is_read() -> None:
    context = {"page_content": "text", "metadata": {"a": 1}, "self": 1, "cls": 2, "score": 0.5}
    (read,) = Sample(answer="A.", contexts=[context]).contexts
    assert (read.page_content, read.metadata) == ("text", {"a": 1})
    text = _spoiled(contexts=[context])
    assert Record.model_validate_json(text).contexts == (read,)


@pytest.mark.parametrize("number", [2**63, 10**40, 10**400])
def test_numbers_that_no_database_holds_are_counted_as_the_most(
    number: int, tmp_path: Path
) -> None:
    usage = Usage(calls=number, input_tokens=number)
    assert (usage + usage).input_tokens == usage.calls == 2**40
    run = scored(at=1).model_copy(update={"usage": usage})
    file = jsonl(tmp_path / "a.jsonl", [run] * 3)
    with open_log(file) as log:
        assert [*records(log)] == [run]
        assert totals(log).judging.calls <= 2**40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "listed"),
    [
        ("time = 'x'", True),
        ("calls = 'many'", True),
        ("first_verdict = 7", True),
        ("record = cast(x'ff' as text)", False),
        ("record = '{\"attempts\": 7}'", False),
        ("record = replace(record, '\"calls\":', '\"calls\":-')", False),
    ],
)
def test_what_no_sink_wrote_is_told_or_one_error(
    damage: str, listed: bool, tmp_path: Path, capsys: Any
) -> None:
    file = sqlite(tmp_path / "a.sqlite", SOME)
    with sqlite3.connect(file) as database:
        table = "records" if damage.startswith("record ") else "runs"
        database.execute(f"update {table} set {damage} where id = ?", (SOME[0].id,))
    database.close()
    for reader in READERS[-3:]:
        code, _, err = _read(file, reader, capsys)
        assert code in (READS, UNREADABLE)
        assert code == READS or "damaged" in err
    code, out, err = _read(file, ("log list", "--json", "-n", "999"), capsys)
    assert (code, len(out.splitlines())) == (READS, len(SOME) - (not listed))
    assert listed or f"run {SOME[0].id} is left out: " in err
