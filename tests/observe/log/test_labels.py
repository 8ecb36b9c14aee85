"""Test files that say which answers are hallucinated."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.observe.log import LogError, export_csv, labels_of_attempts, open_log, read_labels
from support.records import found, guarded, jsonl, refuted, scored

_IDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda id: not id.startswith("\ufeff")
)


def _file(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@given(labels=st.dictionaries(_IDS, st.booleans(), min_size=1))
def test_both_forms_say_the_same(
    labels: dict[str, bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["note", "hallucinated", "id"])
        writer.writerows(["", label, id] for id, label in labels.items())
    lines = (json.dumps({"id": id, "hallucinated": label}) for id, label in labels.items())
    assert read_labels(folder / "labels.csv") == labels
    assert read_labels(_file(folder, "\n".join(lines), "labels.jsonl")) == labels


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("id,hallucinated\na,true\nb,Yes\nc,1\n", {"a": True, "b": True, "c": True}),
        ("id,hallucinated\na, FALSE \nb,no\nc,0\n", {"a": False, "b": False, "c": False}),
        ("id,hallucinated\na,\nb,true\n", {"b": True}),  # A row without a label says nothing.
        ('{"id": 7, "hallucinated": 1}\n\n{"id": "8", "hallucinated": 0}', {"7": True, "8": False}),
        ('{"id": "a", "hallucinated": null}', {}),
        ("run,hallucinated\na,true\n", {"a": True}),
        ('{"run": "a", "hallucinated": false}', {"a": False}),
        ("run,id,hallucinated\n1,a,true\n", {"a": True}),
        # Rows about later attempts are not read.
        ("run,attempt,hallucinated\na,1,true\na,2,false\nb,,false\n", {"a": True, "b": False}),
    ],
)
def test_what_says_which_answer_is_hallucinated(
    tmp_path: Path, text: str, labels: dict[str, bool]
) -> None:
    assert read_labels(_file(tmp_path, text)) == labels


def test_an_exported_table_with_one_more_column(tmp_path: Path) -> None:
    runs = [scored(found(), refuted("FEWL"), at=1), guarded(at=2)]
    table = tmp_path / "runs.csv"
    with open_log(jsonl(tmp_path / "log.jsonl", runs)) as log:
        export_csv(log, table)
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    for row in rows:  # In the guard's run, the second answer is right.
        row["hallucinated"] = str(row["run"] == runs[1].id and row["attempt"] == "1")
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    assert read_labels(table) == {runs[0].id: False, runs[1].id: True}
    assert labels_of_attempts(table) == {
        (runs[0].id, 1): False,
        (runs[1].id, 1): True,
        (runs[1].id, 2): False,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,label\na,true\n", "line 1: it has no field 'hallucinated', only 'id', 'label'"),
        ("", "line 1: it has no field 'id' or 'run', only none"),
        ("id,hallucinated\na,maybe\n", "line 2: hallucinated is 'maybe', which is neither true"),
        ("id,hallucinated\n,true\n", "line 2: its id is ''"),
        ("id,hallucinated\na,true\na,false\n", "line 3: hallucinated of 'a' is False here and Tr"),
        ('{"id": "a", "hallucinated": true}\nnonsense\n', "line 2: the row is 'nonsense'"),
        ('{"id": "a", "hallucinated": 2}', "line 1: hallucinated is 2"),
        ('{"id": true, "hallucinated": true}', "line 1: its id is True"),
        ("id,attempt,hallucinated\na,last,true\n", "line 2: its attempt is 'last'"),
        (f'{{"id": {"[" * 100_000}{"]" * 100_000}, "hallucinated": true}}', "line 1: the row is"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(LogError) as caught:
        read_labels(_file(tmp_path, text))
    assert why in str(caught.value)
    assert "labels.csv" in str(caught.value)


def test_an_attempt_may_be_written_as_spreadsheets_and_pandas_do(tmp_path: Path) -> None:
    text = "id,attempt,hallucinated\na,1.0,true\na,2.0,false\nb,,true\n"
    expected = {("a", 1): True, ("a", 2): False, ("b", 1): True}
    assert labels_of_attempts(_file(tmp_path, text)) == expected


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot read"):
        read_labels(tmp_path / "none.csv")
    (tmp_path / "raw.csv").write_bytes(b"id,hallucinated\n\xff,true\n")
    with pytest.raises(LogError, match="not UTF-8 text"):
        read_labels(tmp_path / "raw.csv")


@pytest.mark.parametrize(("delimiter", "end"), [(",", "\r\n"), (";", "\n"), ("\t", "\r")])
def test_tables_of_spreadsheets(tmp_path: Path, delimiter: str, end: str) -> None:
    rows = [("note", "id", "hallucinated"), ('"a, b; c"', "1", "TRUE"), ("d", "2", "0")]
    text = "".join(delimiter.join(row) + end for row in rows)
    assert read_labels(_file(tmp_path, f"\ufeff{text}")) == {"1": True, "2": False}
