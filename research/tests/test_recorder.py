"""A recording goes on where it was stopped, and is of one model and of the same items."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from demur import DemurError
from demur_research.recorder import Item, is_recording, open_recording, read
from demur_research.runner import Finding, run

ITEMS = [Item(f"i{at}", f"text {at}", at) for at in range(5)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


class Judge:
    """Says what it is given, and remembers it."""

    def __init__(self, say: Callable[[int], Finding] | None = None) -> None:
        self.asked: list[int] = []
        self._say = say or (lambda value: Finding({"said": value}))

    def __call__(self, value: int) -> Finding:
        self.asked.append(value)
        return self._say(value)


def record(
    out: Path,
    items: Sequence[Item[int]] = ITEMS,
    judge: Judge | None = None,
    *,
    names: Sequence[str] = ("a",),
    model: str = "one",
    **options: Any,
) -> list[tuple[int, int]]:
    """Record, and return what was told."""
    told: list[tuple[int, int]] = []
    judges = dict.fromkeys(names, judge or Judge())
    with open_recording(out, items, model) as recording:
        run(recording, items, judges, lambda *now: told.append(now), **options)
    return told


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- It goes on -------------------------------------------------------------------------------


def test_what_is_there_is_not_asked_again(out: Path) -> None:
    record(out, ITEMS[:2])
    before, judge = out.read_bytes(), Judge()
    assert record(out, judge=judge, names=("a", "b")) == [(done, 10) for done in range(2, 11)]
    assert out.read_bytes().startswith(before)
    assert judge.asked == [2, 3, 4, 0, 1, 2, 3, 4]
    assert [(line["configuration"], line["item"]) for line in lines(out)] == [
        (name, item.key) for name in "ab" for item in ITEMS
    ]
    assert record(out, judge=Judge(lambda value: pytest.fail("nothing was left"))) == [(5, 5)]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, DemurError("away")])
def test_a_result_is_in_the_file_before_the_next_is_asked_for(out: Path, stop: Any) -> None:
    def stops(value: int) -> Finding:
        if value == 3:
            raise stop
        return Finding({})

    with pytest.raises((KeyboardInterrupt, DemurError)):
        record(out, judge=Judge(stops))
    assert [line["item"] for line in lines(out)] == ["i0", "i1", "i2"]
    again = Judge()
    record(out, judge=again)
    assert again.asked == [3, 4]


def test_several_are_under_way_at_a_time(out: Path) -> None:
    together = threading.Barrier(5, timeout=10)

    def waits(value: int) -> Finding:
        together.wait()
        return Finding({"said": value})

    record(out, judge=Judge(waits), at_once=5)
    assert {line["item"]: line["result"]["said"] for line in lines(out)} == {
        item.key: item.value for item in ITEMS
    }


def test_a_last_line_that_was_cut_anywhere_is_found_again(out: Path) -> None:
    record(out, ITEMS[:2])
    whole = out.read_bytes()
    first = whole.index(b"\n") + 1
    for at in [*range(9), *range(first, len(whole))]:
        out.write_bytes(whole[:at])
        left = at if at < first else at - first
        with open_recording(out, ITEMS, "one") as recording:
            assert recording.cut == left
        assert out.read_bytes() == whole[: at - left]
        record(out, ITEMS[:2])
        assert out.read_bytes() == whole


def test_a_cut_line_is_told_and_not_left_out(out: Path) -> None:
    record(out, ITEMS[:2])
    with out.open("ab") as torn:
        torn.write('{"item": "Ã'.encode()[:-1])
    with pytest.raises(ValueError, match=r"damaged at line 3.* to record again cuts off"):
        read(out)
    record(out, ITEMS[:3])
    assert [item for item, _ in read(out)] == ["i0", "i1", "i2"]


def test_what_was_undetermined_is_judged_again_only_if_asked_for(out: Path) -> None:
    record(out, judge=Judge(lambda value: Finding({}, "hm" if value == 3 else None)))
    better = Judge()
    record(out, judge=better)
    assert better.asked == []
    for _ in range(2):
        record(out, judge=better, retry=True)
        assert better.asked == [3]
    assert read(out)["i3", "a"].result == {"said": 3}


def test_two_at_a_time_do_not_write(out: Path) -> None:
    with (
        open_recording(out, ITEMS, "one"),
        pytest.raises(ValueError, match="another run writes"),
    ):
        record(out)
    record(out)


def test_text_that_is_no_unicode_is_kept_readable(out: Path) -> None:
    record(out, ITEMS[:1], Judge(lambda value: Finding({"reply": "Red Fox \ud800\u2028."})))
    assert read(out)["i0", "a"].result == {"reply": "Red Fox \ufffd\u2028."}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
def test_a_full_disk_says_that_what_is_there_is_kept(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(out, ITEMS[:1])
    before, whole = out.read_bytes(), Path.open

    def full(path: Path, mode: str = "r", *options: Any, **more: Any) -> Any:
        return whole(Path("/dev/full") if mode == "ab" else path, mode, *options, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DemurError, match=r"cannot write .*No space left.*what is there is kept"):
        record(out)
    assert out.read_bytes() == before


def test_a_compressed_recording_is_read_and_not_written(out: Path) -> None:
    record(out)
    packed = out.with_name("recording.jsonl.gz")
    packed.write_bytes(gzip.compress(out.read_bytes()))
    assert read(packed, ITEMS) == read(out, ITEMS)
    with pytest.raises(ValueError, match="only read"):
        record(packed)


# --- It is of one model, and of the data ------------------------------------------------------


def test_another_model_s_recording_is_refused_before_anything_is_asked(out: Path) -> None:
    record(out, ITEMS[:1])
    before, other = out.read_bytes(), Judge()
    with pytest.raises(ValueError, match="line 1: one was asked, and not two"):
        record(out, judge=other, model="two")
    assert (other.asked, out.read_bytes()) == ([], before)


def test_two_models_in_one_file_are_told(out: Path) -> None:
    for name in ("one", "two"):
        record(out.with_name(name), ITEMS[:2], model=name)
    out.write_bytes(b"".join(out.with_name(name).read_bytes() for name in ("one", "two")))
    with pytest.raises(ValueError, match="line 3: two was asked, and not one"):
        read(out)


def test_a_key_that_means_something_else_now_is_refused(out: Path) -> None:
    record(out)
    changed = Item("i2", "another text", 2)
    for use in (lambda: read(out, [changed]), lambda: record(out, [changed])):
        with pytest.raises(ValueError, match="line 3: i2 says something else in the data"):
            use()


def test_lines_about_other_items_are_left_out(out: Path) -> None:
    record(out)
    assert [item for item, _ in read(out, ITEMS[3:])] == ["i3", "i4"]


def test_data_with_an_id_twice_is_refused(out: Path) -> None:
    with pytest.raises(ValueError, match="an id twice"):
        record(out, [*ITEMS, ITEMS[0]])
    assert not out.exists()


# --- Files that cannot be used ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row: "{", "damaged"),
        (lambda row: "", "damaged"),
        (lambda row: "[]", "no line of a recording"),
        (lambda row: json.dumps({**row, "configuration": ["a"]}), "configuration: "),
        (lambda row: json.dumps({"item": "i0"}), "content: Field required"),
    ],
    ids=["cut", "empty", "list", "configuration", "fields"],
)
def test_a_line_that_is_none_is_told_with_its_number(
    out: Path, change: Callable[[dict[str, Any]], str], told: str
) -> None:
    record(out, ITEMS[:2])
    first, second = lines(out)
    out.write_text(f"{json.dumps(first)}\n{change(second)}\n", encoding="utf-8")
    for use in (lambda: read(out), lambda: record(out)):
        with pytest.raises(ValueError, match=told) as error:
            use()
        assert "line 2" in str(error.value)


@pytest.mark.parametrize("held", ["Notes of mine", '{"id": 1}\n', "[]", "\n"], ids=range(4))
def test_a_file_of_something_else_is_left_as_it_is(out: Path, held: str) -> None:
    out.write_text(held, encoding="utf-8")
    with pytest.raises(ValueError, match="is no recording: name another file"):
        record(out)
    assert out.read_text(encoding="utf-8") == held
    assert not is_recording(out)


def test_files_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*none"):
        read(tmp_path / "none")
    with pytest.raises(ValueError, match="cannot write"):
        record(tmp_path)
    with pytest.raises(ValueError, match=r"cannot write .*none"):
        record(tmp_path / "none" / "out.jsonl")
    assert not is_recording(tmp_path)
