"""Test files of exemplar stores: a file is loaded completely, or an error names the line."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from demur import ExampleStore
from demur.errors import DemurError
from demur.exemplars import Candidate
from support.exemplars import answers, contrary, scorer
from support.fewl import QUESTION
from support.vectors import Told

pytest.importorskip("chromadb")

STRANGE = "1 1 | was \x00 {x} \ud800?"
NOW = "2026-11-22T10:00:00+00:00"


@pytest.mark.slow
def test_a_file_holds_all_of_a_store(tmp_path: Path, store: ExampleStore) -> None:
    store.add(STRANGE, ["a\u2028b", "x" * 50_000], [1, 2], source="a run")
    store.add_many([(f"{at} 1 | q", ["a", f"{at}"], [at, 0.5]) for at in range(1, 450)])
    plain, packed = tmp_path / "kept.jsonl", tmp_path / "kept.jsonl.gz"
    store.export(plain)
    store.export(packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    again = ExampleStore(embedding=Told("another"))
    assert again.load(str(packed)) == 450
    assert list(again.entries()) == list(store.entries())
    # Loading also replaces what is in the store already.
    again.add("7 1 | q", ["7"], [99])
    again.load(plain)
    assert list(again.entries()) == list(store.entries())
    assert again.nearest("1 1 | q", 1) == store.nearest("1 1 | q", 1)


def test_scores_keep_their_scorer(tmp_path: Path) -> None:
    first = ExampleStore(embedding=Told(), scorer=scorer())
    first.add(QUESTION, ["0.2 no", "0.8 yes"])
    first.export(tmp_path / "x")
    # The scores count in a store with the same scorer, and in one without a scorer, which only
    # reads.
    again = ExampleStore(embedding=Told(), scorer=scorer())
    reader = ExampleStore(embedding=Told())
    for store in (again, reader):
        store.load(tmp_path / "x")
        assert list(store.entries()) == list(first.entries())
        assert store.nearest("0 1 | q", 1)[0].answer == "0.8 yes"
    assert answers(again.add(QUESTION, ["0.9 surely"]))[0] == "0.9 surely"
    with pytest.raises(DemurError, match=r"another scorer count: .*graded.* open it with that"):
        reader.add(QUESTION, ["0.9 surely"], [0.9])
    # An empty store with another scorer takes the scores together with their scorer, and rescores.
    other = ExampleStore(embedding=Told(), scorer=scorer(contrary))
    other.load(tmp_path / "x")
    with pytest.raises(DemurError, match=r"call rescore\(\)"):
        other.nearest("0 1 | q", 1)
    other.rescore()
    assert other.nearest("0 1 | q", 1)[0].answer == "0.2 no"
    # A store in which other scores count already refuses the file.
    taken = ExampleStore(embedding=Told())
    taken.add("q", ["a"], [1])
    message = r"in the collection .* the scores of given count, and in the file .* [0-9a-f]{12}"
    with pytest.raises(DemurError, match=message):
        taken.load(tmp_path / "x")
    assert len(taken) == 1


HEAD = '{"kind": "exemplars-2", "scorer": "given"}\n'
GOOD = json.dumps({"question": "q", "candidates": [asdict(Candidate("a", 1.0, "given", NOW))]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no exported exemplars"),
        ('{"kind": "fewl-neighbors-1"}\n', "holds no exported exemplars"),
        ("hello\n", "is damaged at line 1"),
        ('{"kind": "exemplars-2", "scorer": 7}\n', "line 1: expected texts that say whose"),
        (f'{HEAD}{GOOD}\n{{"ques', "is damaged at line 3"),
        (f"{HEAD}{GOOD}\n{GOOD.replace('1.0', 'NaN')}\n", "line 3: expected a finite number as s"),
        (f"{HEAD}{GOOD}\n{GOOD.replace('candidates', 'answers')}\n", "line 3: expected a question"),
    ],
    ids=["empty", "kind", "text", "whose", "cut", "nan", "other keys"],
)
def test_of_a_damaged_file_nothing_is_added_and_its_line_is_told(
    text: str, message: str, tmp_path: Path, store: ExampleStore
) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(ValueError, match=rf"(?s)x\.jsonl.*{message}"):
        store.load(tmp_path / "x.jsonl")
    assert len(store) == 0
