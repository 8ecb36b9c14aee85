"""Test sets that are not available here, with made-up files in their documented form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets import aggrefact, faithbench, ragtruth, read_set
from demur_research.datasets.rows import Part, Reading
from publishers import dump
from support.shared import shared

SUMMARY = "The mill burnt down in 1899 and was rebuilt in brick."


def mark(words: str, *label: str, at: int | None = None) -> dict[str, Any]:
    start = SUMMARY.index(words) if at is None else at
    return {
        **{"annot_id": 1, "annotator_id": "a", "annotator_name": "Ann", "label": [*label]},
        **{"note": "", "summary_span": words, "source_span": None},
        **{"summary_start": start, "summary_end": start + len(words)},
    }


def sample(at: int, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        **{"sample_id": at, "source": "The mill burnt down.", "summary": SUMMARY},
        **{"annotations": [*annotations], "metadata": {"summarizer": "a-model", "gpt_4o": 1}},
    }


def batch(folder: Path, *samples: dict[str, Any], name: str = "batch_3.json") -> Path:
    return dump(folder / name, {"samples": [*samples]})


def test_the_severest_label_of_any_annotator_is_the_summarys(tmp_path: Path) -> None:
    samples = [
        sample(0),
        sample(1, mark("1899", "Benign")),
        sample(2, mark("1899", "Benign"), mark("in brick", "Questionable")),
        sample(3, mark("in brick", "Questionable"), mark("1899", "Unwanted", "Unwanted.Extrinsic")),
    ]
    answers = [row.answers[0] for row in read_set(faithbench.DATA_SET, batch(tmp_path, *samples))]
    assert [(answer.hallucinated, answer.label) for answer in answers] == [
        (False, "Consistent"),
        (False, "Benign"),
        (True, "Questionable"),
        (True, "Unwanted"),
    ]
    assert answers[3].parts == (
        Part(23, 27, True, "Unwanted.Extrinsic"),
        Part(44, 52, True, "Questionable"),
    )
    assert answers[1].parts == (Part(23, 27, False, "Benign"),)


def test_all_batches_at_hand_are_read_and_the_others_are_named(tmp_path: Path) -> None:
    batch(tmp_path, sample(0), sample(1))
    batch(tmp_path, sample(0), name="batch_16.json")
    found = read_set(faithbench.DATA_SET, tmp_path)
    assert [row.key for row in found] == ["batch_3 0", "batch_3 1", "batch_16 0"]
    assert len({row.group for row in found}) == 1
    assert len(found.missing) == 13


@pytest.mark.parametrize("at", [24, 500, -30])
def test_a_span_that_does_not_stand_at_its_offsets_is_counted_and_kept_aside(
    tmp_path: Path, at: int
) -> None:
    marked = sample(0, mark("1899", "Unwanted", at=at), mark("in brick", "Benign"))
    found = read_set(faithbench.DATA_SET, batch(tmp_path, marked))
    (row,) = found
    assert found.kept == {"misplaced spans": 1}
    assert row.metadata["misplaced"] == ["1899"]
    assert [part.label for part in row.answers[0].parts] == ["Benign"]
    assert row.answers[0].hallucinated is True


SOURCES: list[dict[str, Any]] = [
    {
        **{"source_id": "7", "task_type": "QA", "source": "MARCO", "prompt": "Answer."},
        "source_info": {"question": "when did it open", "passages": "passage 1:It opened in May."},
    },
    {
        **{"source_id": "8", "task_type": "Summary", "source": "News", "prompt": "Sum up."},
        "source_info": "The mill burnt down.",
    },
    {
        **{"source_id": "9", "task_type": "Data2txt", "source": "Yelp", "prompt": "Describe."},
        "source_info": {"name": "Zoë's", "stars": 4.0, "attributes": {"Music": None}},
    },
]


def response(
    at: int, source: str, text: str, *labels: dict[str, Any], quality: str = "good"
) -> Any:
    return {
        **{"id": str(at), "source_id": source, "model": "a-model", "temperature": 0.7},
        **{"labels": [*labels], "split": "test", "quality": quality, "response": text},
    }


def span(text: str, words: str, **more: Any) -> dict[str, Any]:
    start = text.index(words)
    told = {"meta": "", "label_type": "Evident Baseless Info", "due_to_null": False}
    return {"start": start, "end": start + len(words), "text": words, **told, **more}


def rag(folder: Path, *responses: Any, sources: Any = SOURCES) -> Path:
    dump(folder / "source_info.jsonl", sources)
    dump(folder / "response.jsonl", responses)
    return folder


def test_an_answer_stands_with_what_its_model_was_given(tmp_path: Path) -> None:
    text = "It opened in May, in the rain."
    told = [
        response(1, "7", text, span(text, "in the rain", implicit_true=True)),
        response(2, "8", "The mill burnt down."),
        response(3, "9", "Zoë's has four stars."),
    ]
    found = read_set(ragtruth.DATA_SET, rag(tmp_path, *told))
    one, two, three = found
    assert (one.question, one.contexts) == ("when did it open", ("passage 1:It opened in May.",))
    assert one.answers[0].parts == (Part(18, 29, True, "Evident Baseless Info"),)
    assert one.answers[0].hallucinated is True
    assert (two.question, two.contexts) == (None, ("The mill burnt down.",))
    assert (two.answers[0].hallucinated, two.group) == (False, "8")
    assert three.contexts == ('{"name": "Zoë\'s", "stars": 4.0, "attributes": {"Music": null}}',)
    assert found.kept == {"misplaced spans": 0, "spans that are true": 1}


def test_answers_of_no_use_are_counted_by_their_fault(tmp_path: Path) -> None:
    told = [
        response(1, "7", "It opened."),
        response(2, "7", "I cannot say.", quality="incorrect_refusal"),
        response(3, "7", "It", quality="truncated"),
        response(4, "7", "It op", quality="truncated"),
    ]
    found = read_set(ragtruth.DATA_SET, rag(tmp_path, *told))
    assert [row.key for row in found] == ["1"]
    assert found.left_out == {"incorrect refusals": 1, "truncated answers": 2}
    assert found.left_out.keys() == ragtruth.DATA_SET.filters.keys()


def lines(folder: Path, *rows: Any) -> Reading:
    return read_set(aggrefact.DATA_SET, dump(folder / "mine.jsonl", rows))


def test_anybodys_lines_of_claim_documents_and_label_are_read(tmp_path: Path) -> None:
    found = lines(
        tmp_path,
        {"dataset": "Ours", "doc": "It opened in May.", "claim": "It opened in May.", "label": 1},
        {"documents": ["It opened in May."], "claim": "It opened in June.", "label": False},
        {"id": 3, "contexts": ["A.", "B."], "claim": "C.", "label": 0, "question": "What?"},
        {"document": "A.", "claim": "A.", "label": True, "group": "mine"},
    )
    one, two, three, four = found
    assert [row.answers[0].hallucinated for row in found] == [False, True, True, False]
    assert (one.metadata["dataset"], one.contexts) == ("Ours", ("It opened in May.",))
    assert one.group == two.group != three.group
    assert (three.key, three.question, three.contexts) == ("3", "What?", ("A.", "B."))
    assert four.group == "mine"


def test_the_lines_of_judges_have_passages_and_sets(tmp_path: Path) -> None:
    line = {
        "passages": "It opened in May.",
        "claim": "It opened.",
        "supported": 1,
        "question": None,
    }
    found = lines(
        tmp_path,
        {"id": 1, "set": "one", **line},
        {"id": 2, "set": "two", **line, "supported": 0},
        {"id": 3, "set": "one", **line},
        {"id": 4, "set": "two", **line, "claim": "It is old.", "supported": True},
    )
    # Each set is looked at by itself: the label of the other one contradicts nothing.
    assert [(row.key, row.metadata["dataset"]) for row in found] == [
        *(("1", "one"), ("2", "two"), ("4", "two"))
    ]
    assert [row.answers[0].hallucinated for row in found] == [False, True, False]
    assert {row.contexts for row in found} == {("It opened in May.",)}
    assert len({row.group for row in found}) == 1
    assert found.left_out == {"repeated pairs": 1}


def test_the_same_claim_in_two_sets_needs_no_ids(tmp_path: Path) -> None:
    line = {"passages": "It opened in May.", "claim": "It opened.", "supported": True}
    found = lines(tmp_path, {**line, "set": "one"}, {**line, "set": "two"})
    assert len({row.key for row in found}) == 2


def test_the_rows_that_judges_may_be_measured_on_are_read() -> None:
    found = read_set(aggrefact.DATA_SET, shared("..", "judge", "eval.jsonl.gz"))
    assert (len(found), {**found.left_out}) == (1959, {"repeated pairs": 11})
    sets = {str(row.metadata["dataset"]) for row in found}
    assert len(sets) == 19
    assert sum(name.startswith("agg_") for name in sets) == 11
