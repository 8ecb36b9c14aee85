"""Test similarities that are compared by right answers of the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benches import Small, made, row_of, values
from colours import COLOURS, chale, knowing, truthfulqa
from demur.errors import DemurError
from demur_research.tables.fewl.small import small

pytestmark = pytest.mark.usefixtures("apart")


def _by_colour(premise: str, hypothesis: str) -> float | str:
    """Let a text with the hypothesis' colour entail it."""
    if "unreadable" in hypothesis:
        return "it cannot be read"
    colours = [{word for word in COLOURS if word in one} for one in (premise, hypothesis)]
    return 0.9 if colours[0] & colours[1] else 0.1


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(_by_colour).stands_in(monkeypatch)


def test_right_answers_are_held_against_others_by_each_similarity(
    path: Path, judging: Small
) -> None:
    sets = {"chale": chale(), "truthfulqa": truthfulqa()}
    found = made("fewl-similarities", path, knowing(), sets)
    for of in sets:
        for name in ("small", "small-question"):
            for order in ("premise: answer", "premise: reference", "both orders"):
                assert values(found, f"{of}: {name}, {order}")[:2] == [100, 100]
        cosine = values(found, f"{of}: cosine")
        assert cosine[2] is None
        words = row_of(found, f"{of}: words, premise: answer")
        assert words.floor
        assert values(found, words.name)[2] == pytest.approx(
            (values(found, words.name)[0] or 0) - (cosine[0] or 0)
        )
        # Neighbours have other colours, so the penalty takes nothing from the right answer.
        assert values(found, f"{of}: small, premise: answer, penalty")[:2] == [100, 100]
    assert values(found, "truthfulqa: the longest answer")[0] is not None
    assert row_of(found, "chale: cosine").items == 4


def test_the_question_stands_in_front_of_both(path: Path, judging: Small) -> None:
    options = {"sets": "chale", "similarities": "small-question"}
    found = made("fewl-similarities", path, knowing(), {"chale": chale()}, options=options)
    assert all(one.startswith("which colour has thing") for pair in judging.asked for one in pair)
    assert all(pair[0][:24] == pair[1][:24] for pair in judging.asked)
    assert values(found, "chale: small-question, premise: answer")[2] is None
    judging.asked.clear()
    made(
        "fewl-similarities",
        path,
        knowing(),
        {"chale": chale()},
        options={**options, "similarities": "small"},
    )
    assert not [pair for pair in judging.asked if "which" in pair[0]]


def test_a_question_with_an_unreadable_answer_is_left_out(path: Path, judging: Small) -> None:
    first, *others = chale()
    right, half, wrong = first.answers
    odd = replace(first, answers=(right, half, replace(wrong, text="It is unreadable.")))
    options = {"sets": "chale", "similarities": "cosine,small"}
    found = made("fewl-similarities", path, knowing(), {"chale": [odd, *others]}, options=options)
    judged = row_of(found, "chale: small, premise: reference")
    assert (judged.items, judged.undetermined) == (3, 1)
    assert values(found, judged.name)[:2] == [100, 100]
    # In the other order, the text is a premise, and can be read.
    assert row_of(found, "chale: small, premise: answer").undetermined == 0
    assert row_of(found, "chale: small, both orders").undetermined == 1
    assert row_of(found, "chale: cosine").undetermined == 0


def test_too_few_questions_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="chale: expected two questions"):
        made("fewl-similarities", path, knowing(), {"chale": chale(1)}, options={"sets": "chale"})


def test_a_text_that_the_judge_cannot_read_is_an_error(judging: Small) -> None:
    assert small().scores([("It is red.", "It is red.")]).tolist() == [0.9]
    assert small().fingerprint != small("Which colour?").fingerprint
    with pytest.raises(DemurError, match="it cannot be read"):
        small().scores([("It is red.", "It is unreadable.")])


@pytest.mark.parametrize("name", ["small", "small-question"])
def test_a_table_that_scores_by_fewl_takes_the_same_similarity(
    path: Path, judging: Small, name: str
) -> None:
    options = {"similarity": name, "wrong": "3"}
    found = made("fewl-v1-table-1", path, knowing(), {"chale": chale()}, options=options)
    assert values(found, "single + no penalty (single)")[0] == 100
    in_front = {pair[0].startswith("which colour") for pair in judging.asked}
    assert in_front == {name == "small-question"}
