"""Test that records are joined to their passages, or that an error says why they cannot be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets import read
from demur_research.datasets.published import (
    CHATGPT,
    LLAMA_2,
    PHD_LISTS,
    VARIANTS,
    Records,
    find_records,
    first_percentage,
    read_records,
)
from demur_research.datasets.rows import LabelledRow
from publishers import PASSAGES, REPLIES, as_lines, dump, published, published_list


def read_passages(data: Path) -> tuple[LabelledRow, ...]:
    return read("phd", data).rows


def read_phd_records(path: Path, passages: Sequence[LabelledRow]) -> Records:
    return read_records(find_records(path, PHD_LISTS, CHATGPT), passages)


def test_the_publishers_lists_are_joined_by_their_passages(tmp_path: Path) -> None:
    data, folder = published(tmp_path)
    records = read_phd_records(folder, read_passages(data))
    assert records.left_over == ()
    assert list(records.by_key) == ["wiki_10w 1", "wiki_10w 2", "wiki_1000w 1", *_high]
    one = records.by_key["wiki_1000w 1"]
    assert (one.reply("qg"), one.is_same("qg")) == ("Emile Zola.", "Yes.")
    assert (one.reply("em"), one.is_same("em")) == ("Entity: Émile Zola\nPercentage: 100%", None)
    assert one.said == {"qg_answer", "em_answer"}


_high = ["wiki_1y 1", "wiki_1y 2"]


def test_the_folder_above_the_lists_will_do_and_so_will_one_list(tmp_path: Path) -> None:
    data, folder = published(tmp_path)
    passages = read_passages(data)
    assert read_phd_records(tmp_path, passages) == read_phd_records(folder, passages)
    alone = read_phd_records(folder / "our_dataset_em_record.json", passages)
    assert all(one.said == {"em_answer"} for one in alone.by_key.values())


def test_lines_say_the_same_as_lists(tmp_path: Path) -> None:
    lists, folder = published(tmp_path)
    lines, records = as_lines(tmp_path)
    of_lists, of_lines = read_passages(lists), read_passages(lines)
    by_lists = _replies(read_phd_records(folder, of_lists), of_lists)
    by_lines = _replies(read_phd_records(records, of_lines), of_lines)
    assert by_lines == by_lists == _replies(read_phd_records(folder, of_lines), of_lines)
    assert by_lines["Iron"] == [("Iron.", None), ("Entity: Copper\nPercentage: 100%", "No.")]


def _replies(records: Records, passages: tuple[LabelledRow, ...]) -> dict[str, Any]:
    return {
        str(one.metadata["entity"]): [
            (records.by_key[one.key].reply(variant), records.by_key[one.key].is_same(variant))
            for variant in VARIANTS
        ]
        for one in passages
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: [*rows, rows[0]], "there are two records of the passage wiki_10w 1"),
        (lambda rows: [{**rows[0], "claim": "No."}], "the record of 'Red Fox' is of another"),
        (lambda rows: [{**rows[0], "claim": None}], "row 1.*expected an id, or an entity and its"),
        (lambda rows: [{**rows[0], "answer": None}], "row 1.*expected a recorded reply"),
    ],
    ids=["twice", "another", "no passage", "no answer"],
)
def test_records_that_cannot_be_joined_are_refused_with_their_file(
    tmp_path: Path, change: Callable[[Any], Any], told: str
) -> None:
    data, folder = published(tmp_path)
    one = dump(folder / "our_dataset_qg_record.json", change(published_list("qg", REPLIES["qg"])))
    with pytest.raises(ValueError, match=told) as raised:
        read_phd_records(folder, read_passages(data))
    assert str(one) in str(raised.value)


def test_what_is_missing_and_what_is_left_over_is_told(tmp_path: Path) -> None:
    data, folder = published(tmp_path)
    rows = published_list("qg", REPLIES["qg"])
    extra = {**rows[0], "entity": "Somebody ", "claim": "Somebody is known."}
    (folder / "our_dataset_em_record.json").unlink()
    dump(folder / "our_dataset_qg_record.json", [*rows[1:], extra])
    records = read_phd_records(folder, read_passages(data))
    assert records.left_over == ("Somebody",)
    assert len(records.by_key) == len(PASSAGES) - 1


def test_of_a_folder_the_records_of_the_model_are_read(tmp_path: Path) -> None:
    _, lists = published(tmp_path)
    _, lines = as_lines(tmp_path)
    other = dump(tmp_path / "records_llama2_7b.jsonl", [])
    assert find_records(tmp_path, PHD_LISTS, CHATGPT) == [lines]
    assert find_records(tmp_path, PHD_LISTS, LLAMA_2) == [other]
    lines.unlink()
    assert {file.parent for file in find_records(tmp_path, PHD_LISTS, CHATGPT)} == {lists}
    told = r"no records of llama2: expected records\*llama2\*\.jsonl$"
    with pytest.raises(ValueError, match=told):
        find_records(lists, PHD_LISTS, LLAMA_2)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match=r"jsonl, or our_dataset_qg_record\.json and our_data"):
        find_records(empty, PHD_LISTS, CHATGPT)


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ("X meets 90% of it, Y 66.67 %.", 0.9),
        ("85,5% of it", 0.855),
        ("\uff18\uff10\uff05", 0.8),
        # The published decision does not ask for a share that is not given.
        ("all 8 criteria", 1.0),
        ("250%, 5 percentages", 1.0),
        ("", 1.0),
    ],
)
def test_of_a_recorded_reply_the_first_percentage_anywhere_counts(reply: str, share: float) -> None:
    assert first_percentage(reply) == share
