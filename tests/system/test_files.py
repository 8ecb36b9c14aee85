"""Test files of JSON lines: written completely or not at all, with equal bytes for equal values."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur._system import as_json, new_files, read_lines, write_lines
from demur._system import files as jsonl
from demur._text import replace_surrogates

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def whole(value: Any) -> Any:
    """Return the value with its lone surrogates replaced."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [whole(one) for one in value]
    if isinstance(value, dict):
        return {whole(key): whole(one) for key, one in value.items()}
    return value


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_what_is_written_is_read_again(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("lines")

    @settings(max_examples=15)
    @given(st.lists(VALUES, max_size=5))
    def check(values: list[Any]) -> None:
        write_lines(folder / name, iter(values))
        first = (folder / name).read_bytes()
        found = list(read_lines(folder / name))
        assert found == [(number, whole(value)) for number, value in enumerate(values, 1)]
        write_lines(folder / name, values)
        assert (folder / name).read_bytes() == first
        assert [path.name for path in folder.iterdir()] == [name]

    check()


def test_a_line_is_a_line_whatever_breaks_are_in_it() -> None:
    assert as_json("a\nb\u2028c\x00\ud800") == '"a\\nb\u2028c\\u0000\ufffd"'


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
@pytest.mark.parametrize("how", ["value", "disk", "interrupt"])
def test_what_stands_in_its_place_stays_when_writing_fails(
    name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / name, ["before"])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    def values() -> Iterator[Any]:
        yield "after"
        if how == "interrupt":
            raise KeyboardInterrupt
        if how == "value":
            yield object()

    if how == "disk":
        monkeypatch.setattr(jsonl, "os", SimpleNamespace(**{**vars(jsonl.os), "fsync": full}))
    with pytest.raises((TypeError, OSError, KeyboardInterrupt)):
        write_lines(tmp_path / name, values())
    assert list(read_lines(tmp_path / name)) == [(1, "before")]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_several_files_are_put_into_place_together(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl.gz"
    with new_files(one, other) as (first, second):
        for at in range(3):
            first({"at": at})
            second(at)
        assert not one.exists()
        assert not other.exists()
    assert one.read_text() == '{"at": 0}\n{"at": 1}\n{"at": 2}\n'
    assert gzip.decompress(other.read_bytes()) == b"0\n1\n2\n"

    def fail() -> None:
        with new_files(one, other) as (first, second):
            first("new")
            second(object())

    with pytest.raises(TypeError):
        fail()
    assert one.read_text().startswith('{"at": 0}')
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jsonl", "other.jsonl.gz"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("x.jsonl", b'"a"\n{"b": ', 2),
        ("x.jsonl", b'"a"\n\xff\n', 2),
        ("x.jsonl", b"\n", 1),
        ("x.jsonl.gz", b"hello", 0),
        ("x.jsonl.gz", gzip.compress(b'"a"\n' * 9)[:-12], 0),
    ],
    ids=["cut", "encoding", "empty", "not packed", "packed and cut"],
)
def test_damage_is_told_with_its_line(name: str, content: bytes, line: int, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} is damaged at line {line}: "):
        list(read_lines(tmp_path / name))


def test_an_empty_file_holds_nothing_and_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    assert list(read_lines(tmp_path / "x")) == []
    with pytest.raises(FileNotFoundError):
        list(read_lines(tmp_path / "y"))
    with pytest.raises(FileNotFoundError):
        write_lines(tmp_path / "no folder" / "x", [1])
