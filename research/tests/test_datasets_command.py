"""Test `demur-bench datasets`: what it lists, what it says of one data set, and how it fetches."""

from __future__ import annotations

from pathlib import Path

import pytest

from demur_research.commands import run
from demur_research.datasets import DATA_SETS
from publishers import as_lines, dump


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    monkeypatch.delenv("DEMUR_DATA", raising=False)


def _root(folder: Path) -> Path:
    (folder / "phd").mkdir()
    as_lines(folder / "phd")
    return folder


def test_every_set_is_listed_with_its_licence_and_its_rows_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["datasets", "--data", str(_root(tmp_path))]) == 0
    out, err = capsys.readouterr()
    head, *lines = (line.split("\t") for line in out.splitlines())
    assert [line[0] for line in lines] == list(DATA_SETS)
    rows = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    assert rows["phd"]["licence"] == DATA_SETS["phd"].licence
    assert rows["phd"]["cannot show"] == DATA_SETS["phd"].cannot_show
    here = {name: (row["published"], row["usable here"]) for name, row in rows.items()}
    assert here["phd"] == ("300", "5")
    assert here["chale"] == ("2,226", "-")
    assert rows["haltt4llm"]["reader"] == "not read here"
    assert rows["phd"]["reader"] == "tried"
    assert err == ""


def test_a_set_that_cannot_be_read_is_told_and_the_others_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chale").mkdir()
    dump(tmp_path / "chale" / "chale.jsonl", [{}])
    assert run(["datasets", "--data", str(_root(tmp_path))]) == 0
    out, err = capsys.readouterr()
    (line,) = [line for line in out.splitlines() if line.startswith("chale\t")]
    assert "cannot be read" in line
    assert "row 1, id: Field required" in err
    assert any("\t5\t" in line for line in out.splitlines() if line.startswith("phd\t"))


def test_one_set_is_told_with_its_files_and_what_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["datasets", "phd", "--data", str(_root(tmp_path))]) == 0
    out = capsys.readouterr().out
    known = DATA_SETS["phd"]
    assert f"Licence: {known.licence}" in out
    assert f"File: {known.files[0].path}, from {known.files[0].url}; sha256 not known" in out
    assert f"Here: 5 rows that can be used, from {tmp_path / 'phd' / 'phd.jsonl'}" in out
    assert "Kept, 0 times: wrong part not in the passage." in out


def test_of_a_set_that_is_nowhere_it_is_told_where_it_was_looked_for_and_how_it_is_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMUR_DATA", str(tmp_path / "own"))
    assert run(["datasets", "chale"]) == 0
    out = capsys.readouterr().out
    cache = tmp_path / "cache" / "demur" / "data"
    assert f"Looked for in: {tmp_path / 'own'}, {cache}" in out
    assert "Not on this machine: demur-bench datasets chale --download fetches it." in out


def test_of_a_set_that_needs_an_account_it_is_told_where_to_put_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["datasets", "aggrefact"]) == 0
    out = capsys.readouterr().out
    place = tmp_path / "cache" / "demur" / "data" / "aggrefact" / "aggrefact.jsonl"
    assert f"Put it at {place}, or name its folder with --data or DEMUR_DATA." in out
    assert "--download fetches it" not in out
    assert "sha256" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["datasets", "pdh"], "expected one of chale, truthfulqa"),
        (["datasets", "--download"], "name the data set to fetch"),
    ],
    ids=["name", "nothing"],
)
def test_a_wrong_call_is_told(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 64
    assert told in " ".join(capsys.readouterr().err.split())
