"""Test that an error says what a file lacks, with its name and the place."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pydantic import BaseModel

from demur_research.datasets.files import load, rows


class Form(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.json", b"{", "a.json is not JSON"),
        ("a.json", b"[" * 100_000, "a.json is (not JSON|nested too deeply)"),
        ("a.json", b"\xff", r"a.json is not UTF-8 text \(byte 0\)"),
        ("a.jsonl", b'{"name": "x"}\n\n{', "a.jsonl, line 3 is not JSON"),
        ("a.jsonl", b"", None),
        ("a.jsonl.gz", b'{"name": "x"}', r"a.jsonl.gz cannot be unpacked"),
        ("a.jsonl.gz", gzip.compress(b'{"name": "x"}')[:-9], r"a.jsonl.gz cannot be unpacked"),
        ("a.jsonl.gz", gzip.compress(b"[]\n{"), "a.jsonl.gz, line 2 is not JSON"),
        ("a.jsonl.gz", gzip.compress(b""), None),
    ],
    ids=["cut", "deep", "bytes", "line", "empty", "unpacked", "torn", "packed", "packed empty"],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, name: str, content: bytes, told: str | None
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if told is None:
        assert load(path) == []
    else:
        with pytest.raises(ValueError, match=told):
            load(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*none\.json: No such file"):
        load(tmp_path / "none.json")


def test_lines_and_a_list_hold_the_same(tmp_path: Path) -> None:
    for name, text in (
        ("a.json", '[{"name":"x"},{"name":"y"}]'),
        ("a.jsonl", '{"name":"x"}\n{"name":"y"}'),
    ):
        content = ("\ufeff" + text).encode()
        (tmp_path / name).write_bytes(content)
        packed = f"{name}.gz"
        (tmp_path / packed).write_bytes(gzip.compress(content))
        for path in (name, packed):
            assert [one.name for one in rows(load(tmp_path / path), Form, path)] == ["x", "y"]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({}, "data: expected a list of objects, got dict"),
        ([{"name": "x"}, {}], "data: row 2, name: Field required$"),
        (["x"], "data: row 1: .*, got 'x'$"),
    ],
    ids=["object", "missing", "text"],
)
def test_a_row_of_another_form_is_told_with_its_place(found: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        rows(found, Form, "data")
