"""Test the biographies on which Reverse Validation was evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_sets import reading
from demur_research.datasets.published import CHATGPT, WIKIBIO_LISTS, find_records, read_records
from publishers import biographies, dump
from support.shared import shared

PASSAGE = "Ann Lee (born 1900) was a poet. She wrote.\n\nShe wrote."
PUBLISHED = {
    "gpt3_text": PASSAGE,
    "wiki_bio_text": "Ann Lee was a sailor.",
    "gpt3_sentences": ["Ann Lee (born 1900) was a poet.", " She wrote.", "She wrote. "],
    "annotation": ["minor_inaccurate", "accurate", "major_inaccurate"],
    "wiki_bio_test_idx": 12,
}


def test_each_sentence_has_its_label_at_its_place(tmp_path: Path) -> None:
    (row,) = reading("wikibio-gpt3", dump(tmp_path / "dataset.json", [PUBLISHED]))
    (answer,) = row.answers
    assert (row.key, answer.text, answer.hallucinated) == ("12", PASSAGE, True)
    assert [
        (PASSAGE[one.start : one.end], one.hallucinated, one.label) for one in answer.parts
    ] == [
        ("Ann Lee (born 1900) was a poet.", True, "minor_inaccurate"),
        ("She wrote.", False, "accurate"),
        ("She wrote.", True, "major_inaccurate"),
    ]
    assert answer.parts[1].start < answer.parts[2].start
    assert row.contexts == ("Ann Lee was a sailor.",)
    assert row.metadata == {"entity": "Ann Lee", "in_rv_subset": True, "ratio": 2 / 3}


@pytest.mark.parametrize(
    ("sentence", "labels", "inside"),
    [
        ("A B C (born 1900) was.", ["major_inaccurate"], True),
        ("A B C D (born 1900) was.", ["major_inaccurate"], False),  # The last piece is empty.
        ("A B C.", ["minor_inaccurate"], True),
        ("A B C was here.", ["minor_inaccurate"], False),
        ("A B (born 1900) was.", ["accurate"], False),
    ],
    ids=["three words", "four words", "no bracket", "long", "accurate"],
)
def test_the_subset_of_reverse_validation_has_short_names_and_errors(
    tmp_path: Path, sentence: str, labels: list[str], inside: bool
) -> None:
    told = {"gpt3_text": sentence, "gpt3_sentences": [sentence], "annotation": labels}
    (row,) = reading("wikibio-gpt3", dump(tmp_path / "dataset.json", [{**PUBLISHED, **told}]))
    assert row.metadata["in_rv_subset"] is inside
    assert (row.metadata["entity"] is not None) is inside


def test_a_sentence_that_does_not_stand_there_is_counted(tmp_path: Path) -> None:
    other = {**PUBLISHED, "gpt3_sentences": ["Ann Lee (born 1900)", "She sang.", "She wrote."]}
    found = reading("wikibio-gpt3", dump(tmp_path / "dataset.json", [other]))
    assert [part.label for part in found.rows[0].answers[0].parts] == [
        "minor_inaccurate",
        "major_inaccurate",
    ]
    assert found.kept["sentence without a place"] == 1


def test_of_the_published_lists_those_are_joined_that_the_data_has() -> None:
    rows = reading("wikibio-gpt3", shared("wikibio_gpt3", "wikibio.jsonl"))
    passages = [row for row in rows if row.metadata["in_rv_subset"]]
    files = find_records(shared("official", "phd"), WIKIBIO_LISTS, CHATGPT)
    records = read_records(files, passages)
    assert (len(passages), len(records.by_key), len(records.left_over)) == (118, 98, 14)


def test_stray_signs_are_taken_off_an_entity_and_counted(tmp_path: Path) -> None:
    found = reading("wikibio-gpt3", biographies(tmp_path)[0])
    entities = [row.metadata["entity"] for row in found]
    assert entities == ["Ann Lee", "Bob Ray", "Cy Dent", "Di Moss", None]
    assert found.kept["stray signs around the entity"] == 2
