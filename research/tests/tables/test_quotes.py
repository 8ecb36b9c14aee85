"""Test quotes against marked sentences: by hand, with scripted replies, and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from benches import made, row_of, values
from demur import DemurError
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.tables import quotes
from support.fakes import ScriptedModel, isolated

PAGE = ("Contact", "The mill of ward {at} is tall.", "Home", "It burnt in 1880.", "It rained.")


def row(
    at: int, label: str = "supported", sets: Sequence[Sequence[int]] = ((1, 3),)
) -> LabelledRow:
    told = {
        "evidence": [sentence.format(at=at) for sentence in PAGE],
        "supporting_sentences": [list(one) for one in sets],
    }
    answer = Answer(f"The tall mill of ward {at} burnt in 1880.", label != "supported", label=label)
    return LabelledRow(str(at), None, (answer,), group=f"ward {at}", metadata=told)


WARDS = [row(at) for at in range(6)]


def marked(sets: Sequence[Sequence[int]], *sentences: str) -> quotes.Marked:
    return quotes.Marked("1", "g", "A claim.", sentences, tuple(map(frozenset, sets)))


def labels(**of_ward: str) -> ScriptedModel:
    """Return a model that labels each claim as given for its ward, and else as Entailment."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "extraction":
            return "No claims"
        claim = isolated("claims" if stage == "joint" else "claim", messages)
        name = next((name for name in of_ward if f"ward {name[1:]} " in claim), "")
        label = of_ward.get(name, "Entailment")
        if label == "fails":
            raise DemurError("away")
        return f"1. {label}"

    return ScriptedModel(script=script)


def test_a_sentence_is_quoted_where_quotes_cover_half_of_it() -> None:
    one = marked([[0]], "abcdef", "ghij", "", "kl")  # The sentences start at 0, 7, 12 and 13.
    assert one.page == "abcdef\nghij\n\nkl"
    assert one.quoted([(0, 3)]) == {0}
    assert one.quoted([(0, 2)]) == set()
    assert one.quoted([(0, 2), (4, 9)]) == {0, 1}
    assert one.quoted([(0, len(one.page))]) == {0, 1, 3}


def test_the_set_that_agrees_best_counts() -> None:
    one = marked([[0, 1, 2], [3]], *"abcde")
    found = quotes.agreement(one, frozenset({0, 1}))
    assert (found.count, found.precision, found.recall) == (2, 1.0, pytest.approx(2 / 3))
    assert found.f1 == pytest.approx(0.8)
    assert quotes.agreement(one, frozenset({3})).f1 == 1.0
    assert quotes.agreement(one, frozenset({4})).precision == 0.0


def test_no_quote_has_no_precision_and_one_that_covers_no_sentence_has_none_right() -> None:
    one = marked([[0]], "a")
    without, astray = quotes.agreement(one, None), quotes.agreement(one, frozenset())
    assert (without.precision, without.recall, without.f1) == (None, 0.0, 0.0)
    assert (astray.precision, astray.recall, astray.f1) == (0.0, 0.0, 0.0)
    values = [figure.value for figure in quotes.figures([without, astray], seed=0)]
    assert values == [0.0, 0.0, 0.0, 0.0, 1]
    assert quotes.figures([], seed=0)[0].value is None


def test_claims_are_those_of_the_labels_with_sentences_that_support_them() -> None:
    rows = [row(1), row(2, "partially_supported"), row(3, "not_supported", [[]]), row(4, sets=[[]])]
    assert [one.key for one in quotes.marked(rows, quotes.LABELS)] == ["1", "2"]
    assert [one.key for one in quotes.marked(rows, ["supported"])] == ["1"]
    (one,) = quotes.marked([row(5, sets=[[], [1, 3], [3]])], quotes.LABELS)
    assert one.sets == ({1, 3}, {3})
    assert one.mean_size == 1.5


@pytest.mark.usefixtures("apart")
def test_each_way_is_held_against_the_marked_sentences_and_replayed(path: Path) -> None:
    sets = {"wice": WARDS}
    found = made(quotes.QUOTES, path, labels(w0="Neutral", w1="Contradiction"), sets)
    assert values(found, "overlap, 1 sentence")[:2] == [100, 50]
    assert values(found, "overlap, 2 sentences") == [100, 100, 100, 2, 0]
    assert values(found, "refchecker's rule on the page")[4] == 0
    assert row_of(found, "overlap, 1 sentence").floor
    assert not row_of(found, "nearness, 1 sentence").floor
    every, some = (
        row_of(found, name) for name in ("refchecker", "refchecker, claims with a quote")
    )
    assert (every.items, every.undetermined, some.items) == (6, 0, 5)
    assert every.spent is not None
    of_every, of_some = values(found, every.name), values(found, some.name)
    assert (of_every[4], of_some[4]) == (1, 0)
    assert of_every[0] == of_some[0]  # A claim without a quote has no precision.
    assert of_every[1] == pytest.approx(5 / 6 * (of_some[1] or 0))
    assert made(quotes.QUOTES, path, sets=sets) == found


def test_what_is_undetermined_is_counted_and_in_no_figure(path: Path) -> None:
    options = {"ways": "refchecker"}
    found = row_of(
        made(quotes.QUOTES, path, labels(w2="fails"), {"wice": WARDS}, options=options),
        "refchecker",
    )
    assert (found.items, found.undetermined) == (5, 1)
    assert [figure and figure.value for figure in found.figures][4] == 0
