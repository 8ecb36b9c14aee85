"""Each decision is the one its name says, and says why."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.matching import (
    MATCHERS,
    Decision,
    at_least,
    exact,
    normalized,
    percentages,
    published_em,
    published_qg,
    same_entity,
    wikibio_name,
)
from demur.models.isolation import isolate

ANYTHING = st.text(max_size=80)
NAME = st.from_regex(r"[A-Z][a-z]{4,9}( [A-Z][a-z]{3,9}){0,2}", fullmatch=True)

# --- Percentages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("X meets 90% of it, Y 66.67 %.", (90.0, 66.67)),
        ("85,5% of it", (85.5,)),
        ("80 percent, or 70 per cent", (80.0, 70.0)),
        ("８０％", (80.0,)),
        ("about 80-90%", (90.0,)),
        ("100%", (100.0,)),
        ("all 8 criteria", ()),
        ("5 percentages", ()),
        ("in 1921. %", ()),
        ("9" * 500 + "%", ()),
        ("", ()),
    ],
)
def test_percentages_are_read(reply: str, found: tuple[float, ...]) -> None:
    assert percentages(reply) == found


@given(st.lists(st.integers(0, 1000), max_size=5), st.sampled_from(["%", " %", " percent"]))
def test_every_percentage_is_read_in_its_order(values: list[int], sign: str) -> None:
    reply = ", then ".join(f"{value}{sign}" for value in values)
    assert percentages(reply) == tuple(map(float, values))


@given(st.text())
def test_percentages_of_any_text_are_finite(reply: str) -> None:
    assert all(math.isfinite(value) and value >= 0 for value in percentages(reply))


# --- All decisions -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MATCHERS))
def test_a_reply_that_is_the_name_matches(name: str) -> None:
    decision = MATCHERS[name]("Mary Anning", "Mary Anning.", 90)
    assert decision.same
    assert "names Mary Anning" in decision.reason
    assert decision.percentage is None


@pytest.mark.parametrize("name", list(MATCHERS))
@pytest.mark.parametrize("reply", ["", " \n", "Charles Lyell meets 100% of it."])
def test_a_reply_that_does_not_name_it_does_not_match(name: str, reply: str) -> None:
    decision = MATCHERS[name]("Mary Anning", reply, 90)
    assert not decision.same
    assert "not name Mary Anning" in decision.reason


@pytest.mark.parametrize("name", list(MATCHERS))
def test_an_entity_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected the name of one entity, got ' '"):
        MATCHERS[name](" ", "Mary Anning", None)


@pytest.mark.parametrize("name", ["exact", "wikibio_name", "normalized"])
@pytest.mark.parametrize("least", [-1, 100.5, math.nan, math.inf])
def test_a_least_that_is_no_percentage_is_refused(name: str, least: float) -> None:
    with pytest.raises(ValueError, match=r"least: expected a percentage in \[0, 100\]"):
        MATCHERS[name]("Mary Anning", "Mary Anning", least)


@pytest.mark.parametrize("name", ["exact", "wikibio_name", "normalized"])
@given(given_=st.integers(0, 100), least=st.integers(0, 100))
def test_the_first_percentage_has_to_be_as_high_as_the_least(
    name: str, given_: int, least: int
) -> None:
    reply = f"Mary Anning meets {given_}%, or else 100%."
    decision = MATCHERS[name]("Mary Anning", reply, float(least))
    assert decision.same == (given_ >= least)
    assert decision.percentage == given_
    assert f"gives {given_} percent" in decision.reason
    assert MATCHERS[name]("Mary Anning", reply, None).same


@pytest.mark.parametrize("name", list(MATCHERS))
@given(entity=ANYTHING, reply=ANYTHING, least=st.none() | st.floats(0, 100))
def test_every_decision_has_one_sentence_of_reason(
    name: str, entity: str, reply: str, least: float | None
) -> None:
    try:
        decision = MATCHERS[name](entity, reply, least)
    except ValueError as error:
        # Whether it raises depends on the drawn name: `pytest.raises` would ask for it each time.
        assert "expected the name of one entity" in str(error)  # noqa: PT017
    else:
        assert decision.reason.startswith("The reply ")
        assert decision.reason.endswith(".")
        assert decision.percentage == next(iter(percentages(reply)), None)


@pytest.mark.parametrize("name", list(MATCHERS))
@given(entity=NAME, tail=st.sampled_from([" ", "\n", " (band)"]))
def test_what_stands_around_an_entity_does_not_count(name: str, entity: str, tail: str) -> None:
    assert MATCHERS[name](f" {entity}{tail}", f"It is {entity}.", 90).same


@pytest.mark.parametrize("entity", ['"Mary Anning ', "Mary Anning, "])
def test_stray_quotes_and_commas_count_only_where_they_did_in_the_published_results(
    entity: str,
) -> None:
    same = {name for name, decide in MATCHERS.items() if decide(entity, "Mary Anning.", None).same}
    assert same == {"exact", "normalized"}


# --- What tells them apart -----------------------------------------------------------------------


def test_exact_wants_the_whole_name_and_not_its_case() -> None:
    assert exact("Mary Anning", "it is MARY ANNING, by 90%", 90).same
    assert not exact("Mary Anning", "it is Anning, by 100%", 90).same
    assert not exact("Mary Anning", "it is Mary Anning, by 89%", 90).same
    assert exact("Ann", "Annapolis", None).same  # a string, not a word


def test_published_qg_does_not_look_at_percentages() -> None:
    decision = published_qg("Metis (mythology)", "It is metis, 10%", 90)
    assert decision == Decision(True, "The reply names Metis.", 10.0)


@pytest.mark.parametrize(
    ("entity", "reply", "same"),
    [
        ("Raven", "It is the raven, by 80%", True),
        ("Raven", "It is the raven, by 79%", False),
        ("Raven", "It is the raven.", True),
        ("Raven", "It is a crow, by 100%", False),
        ("Raven", "The raven meets all, by 50%", True),
        ("Raven", "The raven matches all, by 50%", True),
        ("Raven", "A perfect match is the raven, by 50%", True),
        ("Raven", "A Perfect Match is the raven, by 50%", False),
        ("Raven", "The raven, by 87.5%", False),
        ("Raven", "The raven, by 79.99%", True),
        ("Raven", "The raven, by 50%, or the crow, by 100%", True),
        ("Raven", "The raven meets all except one, 50%", False),
        ("Raven", "The raven meets all Except one, 50%", True),
        ("Flag", "A flag matches 100%", False),
        ("Flag", "A Flag matches 100%", True),
        ("Flag", "A flag matches 90%", True),
        ("Flag (heraldry)", "A flag meets all", False),
    ],
)
def test_published_em_is_what_the_recorded_results_require(
    entity: str, reply: str, same: bool
) -> None:
    assert published_em(entity, reply, None).same is same
    assert published_em(entity, reply, 100).same is same  # 80 is built in


@pytest.mark.parametrize(
    ("entity", "reply", "same"),
    [
        ("Mary Jane Anning", "Mary Anning", True),
        ("Mary Anning", "Mary Shelley", False),
        ("Mary Jane Ann Anning", "Mary Anning", True),  # "ann" stands in "anning"
        ("Mary Jane Louise Anning", "Mary Anning", False),
    ],
)
def test_wikibio_name_wants_two_thirds_of_the_pieces(entity: str, reply: str, same: bool) -> None:
    decision = wikibio_name(entity, reply, None)
    assert decision.same is same
    assert "pieces" in decision.reason


def test_normalized_tells_what_it_took_for_the_name() -> None:
    assert normalized("Emperor Ōjin", "It is Ojin.", None).reason == (
        'The reply names Emperor Ōjin, as "Ojin".'
    )
    assert not normalized("Ann", "Annapolis", None).same


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        ("Hoy", True),
        ("Hoy or the Isle of Hoy", True),
        ("Skye, Hoy or Mull", True),
        ("Skye, Hoy, Mull or Jura", False),
        ("1. Skye\n2. Hoy\n3. Mull\n4. Jura", False),
        ("- Skye\n- Hoy\n- Mull\n- Jura\n- Islay", False),
        ("Hoy, Orkney, Scotland, United Kingdom, Europe", True),
        ("Hoy\n\nIt is\nthe second\nlargest of those islands in the far north, or nearly so", True),
        ("Entity: Hoy\nPercentage: 90%\nNot met: 1, 2, 3 or 4", True),
        ("Entity: Skye\nPercentage: 90%\nIt is near Hoy.", False),
        ("Entity: 80%\n\nThe entity is Hoy.", True),
        ("Entity: none", False),
        ("It is not Hoy.", False),
        ("not Hoy but Skye", False),
        ("unknown", False),
    ],
)
def test_normalized_wants_the_name_given_and_not_only_mentioned(reply: str, same: bool) -> None:
    assert normalized("Hoy", reply, None).same is same


def test_normalized_tells_that_a_reply_is_a_list() -> None:
    decision = normalized("Hoy", "Hoy\nSkye\nMull\nJura", None)
    assert decision.reason == "The reply does not name Hoy: it lists 4 names, and gives none."


# --- A model's word on it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        ("Yes.", True),
        ("**No**, they differ.", False),
        ("no", False),
        ("The answer is: yes", True),
        ("Answer: No.", False),
        ("Final answer: yes.", True),
        ("Yes and no.", None),
        ("Nobody knows.", None),
        ("Yesterday", None),
        ("I cannot answer without more context, so no.", None),
        ("", None),
    ],
)
def test_yes_and_no_are_read_and_nothing_else_is(reply: str, same: bool | None) -> None:
    found = same_entity(reply)
    assert (found and found.same) is same


def test_tags_that_a_model_repeats_do_not_hide_what_it_says() -> None:
    found = same_entity(isolate("reply", "Yes."))
    assert found is not None
    assert found.same


@given(st.text())
def test_any_reply_is_read_or_left_undecided(reply: str) -> None:
    found = same_entity(reply)
    assert found is None or isinstance(found.same, bool)


# --- Percentage and name -------------------------------------------------------------------------


def test_a_percentage_never_makes_a_match_of_another_name() -> None:
    other = Decision(False, "Another.")
    assert at_least(50, "100%", other) == Decision(False, "Another.", 100.0)
