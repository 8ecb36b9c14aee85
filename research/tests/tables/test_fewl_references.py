"""Test references that are unlike: several models, with a document at hand and without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from benches import made, row_of, values
from colours import chale, colour, halueval, knowing, truthfulqa
from demur_research.bench import Result
from demur_research.datasets.rows import LabelledRow
from support.fakes import ScriptedModel, isolated

pytestmark = pytest.mark.usefixtures("apart")


class Other(ScriptedModel):
    """Be another model than the one that knows all colours."""

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"knows": "what it reads"}


def reading(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Know the right colour only with the document at hand."""
    at = int(isolated("question", messages).rsplit(" ", 1)[1])
    told = "<document-" in str(messages[-1].content)
    return f"{colour(at if told else at + 1)} . It is painted ."


def asked(path: Path, data: dict[str, Sequence[LabelledRow]], **options: str) -> Result:
    others = {"right": knowing(), "reading": Other(script=reading)}
    return made(
        "fewl-references",
        path,
        knowing(),
        data,
        others,
        options={"similarities": "cosine", "models": "right,reading", **options},
    )


def test_a_model_that_needs_the_document_is_as_good_with_it_and_worse_without(path: Path) -> None:
    found = asked(path, {"chale": chale()}, sets="chale", similarities="words")
    assert values(found, "chale: right, words")[:2] == [100, 100]
    assert values(found, "chale: reading with the document, words")[:2] == [100, 100]
    alone = row_of(found, "chale: reading, words")
    assert values(found, alone.name)[0] == 50
    assert values(found, alone.name)[2] == -50
    assert row_of(found, "chale: the longest answer").floor


def test_weights_by_labels_and_by_pairs_favour_the_model_that_knows(path: Path) -> None:
    found = asked(path, {"chale": chale()}, sets="chale", similarities="words", wrong="3")
    alike, labels, pairs = (
        values(found, f"chale: all models, words, weighed {way}")[0]
        for way in ("alike", "by labels", "by pairs")
    )
    assert labels == pairs == 100
    assert alike is not None
    assert alike <= 100
    assert any("4 of 4 questions have 3 usable pairs" in note for note in found.notes)
    assert values(found, "chale: all models, words, weighed by pairs, penalty")[0] is not None


def test_data_without_documents_have_no_rows_with_them(path: Path) -> None:
    found = asked(path, {"truthfulqa": truthfulqa(), "halueval-qa": halueval(), "chale": chale()})
    documented = {row.name.split(":")[0] for row in found.rows if "with the document" in row.name}
    assert documented == {"chale"}


def test_a_question_that_a_model_does_not_answer_is_left_out_for_all(path: Path) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        said = reading(stage, messages)
        return "" if isolated("question", messages).endswith("0") else said

    found = made(
        "fewl-references",
        path,
        knowing(),
        {"chale": chale()},
        {"right": knowing(), "silent": Other(script=silent)},
        options={"sets": "chale", "models": "right,silent", "similarities": "cosine"},
    )
    assert {row.items for row in found.rows} == {3}
    assert any("1 questions have no answer of some model" in note for note in found.notes)


def test_too_few_answers_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="expected two questions that every model answers"):
        asked(path, {"chale": chale(1)}, sets="chale")
