"""Test by which score answers of several sentences are ranked, with a scripted judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches import LocalJudge, made, row_of, says_its_support, values
from demur_research.bench import Result
from demur_research.datasets.rows import Answer, LabelledRow, Part


def biography(key: str, *sentences: tuple[object, bool]) -> LabelledRow:
    texts = [f"It is {support} sure." for support, _ in sentences]
    starts = [sum(len(text) + 1 for text in texts[:at]) for at in range(len(texts))]
    parts = tuple(
        Part(start, start + len(text), not right, "")
        for start, text, (_, right) in zip(starts, texts, sentences, strict=True)
    )
    answer = Answer(" ".join(texts), not all(right for _, right in sentences), parts=parts)
    # The article has the numbers: a sentence whose numbers stand nowhere would not be supported.
    article = " ".join([f"Article {key}.", *(str(support) for support, _ in sentences)])
    return LabelledRow(key, None, (answer,), contexts=(article,))


def make(path: Path, *data: LabelledRow, **options: str) -> Result:
    model = LocalJudge(script=says_its_support)
    return made("judges-answers", path, model, {"wikibio-gpt3": data}, options=options)


TWO = [biography("a", (0.9, True), (0.75, True)), biography("b", (0.9, True), (0.7, False))]


def test_each_run_of_sentences_is_an_answer_that_is_right_if_all_of_them_are(
    tmp_path: Path,
) -> None:
    found = make(tmp_path / "r", *TWO, judge="local")
    # Right are 0.9, 0.75, 0.9 + 0.75, and 0.9; wrong are 0.7, and 0.9 + 0.7.
    assert values(found, "least support") == [1, 1, None, None]
    assert values(found, "product of the supports") == [7 / 8, 1, None, None]
    assert values(found, "mean support") == [pytest.approx(7 / 8), 1, None, None]
    assert values(found, "share of sentences from 0.5 on") == [0.5, 0.5, None, None]
    assert values(found, "fewer sentences") == [pytest.approx(5 / 8), 0.5, None, None]
    judged = row_of(found, "least support")
    assert (judged.items, judged.floor) == (6, False)
    assert judged.spent is not None
    assert judged.spent.calls == 1
    assert row_of(found, "fewer sentences").floor
    assert row_of(found, "least overlap of a sentence with the article").floor


def test_an_answer_with_a_sentence_that_could_not_be_judged_is_left_out(tmp_path: Path) -> None:
    unread = biography("c", (0.9, True), ("unreadable", False), (0.8, True))
    found = make(tmp_path / "r", *TWO, unread, judge="local")
    assert row_of(found, "mean support").items == 8
    assert any("1 of 7 sentences could not be judged" in note for note in found.notes)


def test_only_one_judge_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"judge: expected one of small, local, logprobs, .* got 'small,local'"
    ):
        make(tmp_path / "r", *TWO, judge="small,local")
