"""Test the rows that are made by rules: their labels are right by construction."""

from __future__ import annotations

import random
import re
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur_research.recipe import changes
from demur_research.recipe.kinds import KINDS
from demur_research.recipe.made import docstrings, from_texts
from demur_research.recipe.rows import TrainingRow
from demur_research.recipe.spoken import FAMILIES, with_texts
from demur_research.recipe.worlds import FORMS, Claim, World, claims, drawn, from_worlds, told
from demur_research.texts.injections import INJECTIONS

SEEDS = st.integers(0, 2**32)
FERRY = (
    "The Halden ferry was built in 1912 by Maria Brandt. It can carry 40 cars, and Erik Sund owns "
    "it. On 4 May 1931, it sank before the harbour of Osterby (a small town). Three sailors and "
    "the cook were saved by fishermen from Lund."
)
BAKERY = (
    "The bakery Kringla opens at six on Monday. Its founder, Tove Halvorsen, was born in Uppsala. "
    "She wrote 12 books about rye bread, and her son sells them in the shop. No flour is bleached."
)


# -- worlds ----------------------------------------------------------------------------------------


def holds(world: World, claim: Claim) -> bool:
    """Return whether the world says what a claim says, computed from the world's values alone."""
    if claim.says == "unsaid":
        return False
    assert claim.attribute is not None
    values = {one: world.values[one, claim.attribute] for one in world.entities}
    own = [values[entity] for entity in claim.entities]
    if claim.says == "value":
        return own[0] == claim.value
    numbers = [int(value) for value in own]
    every = [int(value) for value in values.values()]
    return {
        "more": lambda: numbers[0] > numbers[1],
        "less": lambda: numbers[0] < numbers[1],
        "most": lambda: numbers[0] == max(every),
        "least": lambda: numbers[0] == min(every),
        "further": lambda: numbers[0] - numbers[1] == claim.value,
        "together": lambda: sum(numbers) == claim.value,
    }[claim.says]()


@given(SEEDS)
def test_the_label_of_a_claim_agrees_with_its_world(seed: int) -> None:
    rng = random.Random(seed)
    world = drawn(rng)
    for claim in claims(world, rng):
        assert (claim.label == "support") == holds(world, claim), claim
        assert (claim.label == "neutral") == (claim.says == "unsaid"), claim


@given(SEEDS)
def test_a_claim_says_its_value_in_a_form_of_it_and_names_its_entities(seed: int) -> None:
    rng = random.Random(seed)
    world = drawn(rng)
    attributes = {one.name: one for one in world.kind.attributes}
    for claim in claims(world, rng):
        read = f"{claim.question or ''} {claim.text}".lower()
        assert all(entity.lower() in read for entity in claim.entities)
        if claim.value is not None and claim.attribute is not None:
            forms = attributes[claim.attribute].written(claim.value)
            assert any(form.lower().rstrip(".") in read for form in forms), claim


@given(SEEDS, st.sampled_from(FORMS))
def test_passages_tell_every_value_of_a_world_in_each_form(seed: int, form: str) -> None:
    rng = random.Random(seed)
    world = drawn(rng)
    passages = told(world, form, rng)  # type: ignore[arg-type]  # one of the forms
    for attribute in world.told:
        for entity in world.entities:
            assert entity.lower() in passages.lower()
            value = world.values[entity, attribute.name]
            assert any(one in passages for one in attribute.written(value))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_two_values_of_an_attribute_are_written_alike(kind: object) -> None:
    assert kind in KINDS
    for attribute in next(one for one in KINDS if one is kind).attributes:
        forms = [form for value in attribute.values for form in attribute.written(value)]
        assert len(forms) == len(set(forms)), attribute.name


# -- sentences -------------------------------------------------------------------------------------


@given(SEEDS, st.sampled_from(re.split(r"(?<=\.) ", f"{FERRY} {BAKERY}")))
def test_a_changed_sentence_is_another_one_that_its_text_lacks(seed: int, sentence: str) -> None:
    changed = changes.wrong(sentence, FERRY, random.Random(seed))
    assert changed is None or (changed != sentence and changed not in FERRY)


@pytest.mark.parametrize(
    ("change", "sentence", "possible"),
    [
        (changes.change_listed_word, "It opens on Friday.", r"It opens on \w+day\."),
        (changes.change_listed_word, "She has two sons.", r"She has \w+ sons\."),
        (changes.change_name, "It is owned by Erik Sund.", r"It is owned by (?!Erik Sund).+\."),
        (changes.negate, "It was built in 1912.", r"It was not built in 1912\."),
        (changes.negate, "It was not built in 1912.", r"It was built in 1912\."),
        (changes.negate, "It can sink.", r"It cannot sink\."),
        (changes.oppose, "It sank before noon.", r"It sank after noon\."),
        (changes.swap_names, "So Anna told Boris.", r"So Boris told Anna\."),
    ],
)
def test_a_rule_changes_one_detail(change: changes.Change, sentence: str, possible: str) -> None:
    for seed in range(20):
        changed = change(sentence, FERRY, random.Random(seed))
        assert changed is not None
        assert changed != sentence
        assert re.fullmatch(possible, changed)


@given(SEEDS, st.integers(0, 3000))
def test_a_changed_number_is_another_number(seed: int, number: int) -> None:
    sentence = f"It has {number} rooms."
    changed = changes.change_number(sentence, FERRY, random.Random(seed))
    assert changed is not None
    found = re.fullmatch(r"It has (\d+) rooms\.", changed)
    assert found
    if number:  # one less than nothing is nothing
        assert int(found[1]) != number


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("Nobody was saved.", changes.negate),  # "Nobody was not saved" is no plain denial
        ("The cook, Anna and Boris.", changes.swap_names),  # the order says nothing
        ("It sank.", changes.change_number),
    ],
)
def test_a_rule_that_does_not_apply_changes_nothing(sentence: str, change: changes.Change) -> None:
    assert change(sentence, FERRY, random.Random(0)) is None


@pytest.mark.parametrize(
    ("rule", "sentence", "expected"),
    [
        (changes.without_brackets, "Osterby (a town) is old.", "Osterby is old."),
        (changes.with_lead_last, "In 1912, it was built.", "It was built in 1912."),
        (changes.other_numeral, "She wrote 12 books.", "She wrote twelve books."),
        (changes.other_numeral, "She wrote twelve books.", "She wrote 12 books."),
        (changes.other_numeral, "It has 1,500 rooms.", "It has 1500 rooms."),
        (changes.other_date, "It sank on 4 May 1931.", "It sank on May 4, 1931."),
        (changes.other_date, "It sank on May 4, 1931.", "It sank on 4 May 1931."),
        (changes.synonym, "It is approximately 4 m long.", "It is about 4 m long."),
    ],
)
def test_a_rewording_says_the_same(rule: changes.Rewording, sentence: str, expected: str) -> None:
    assert rule(sentence) == expected


# -- rows ------------------------------------------------------------------------------------------


@given(SEEDS)
def test_a_right_claim_of_a_text_is_not_a_wrong_one_too(seed: int) -> None:
    found = from_texts([FERRY, BAKERY], "made", random.Random(seed))
    labels = {(row.passages, row.claim): row.label for row in found}
    assert len(labels) == len(found)
    for row in found:
        if row.label == "contradict":
            assert row.claim not in row.passages


def test_each_kind_of_row_is_made_of_texts() -> None:
    found = [row for seed in range(10) for row in from_texts([FERRY, BAKERY], "x", _rng(seed))]
    assert {row.label for row in found} == {"support", "contradict", "neutral"}


@settings(max_examples=20)
@given(SEEDS)
def test_equal_seeds_make_equal_rows(seed: int) -> None:
    def made() -> list[TrainingRow]:
        rng = random.Random(seed)
        rows = [*from_worlds(3, rng), *from_texts([FERRY, BAKERY], "made", rng)]
        return [*rows, *with_texts(rows, 5, rng)]

    assert made() == made()


@given(SEEDS)
def test_a_text_that_speaks_to_the_judge_changes_no_label_and_no_right_claim(seed: int) -> None:
    rng = random.Random(seed)
    rows = from_worlds(2, rng)
    originals = {(row.passages, row.claim) for row in rows}
    labels = {(row.claim, row.label) for row in rows}
    for row in with_texts(rows, 10, rng):
        assert (row.passages, row.claim) not in originals
        if row.label == "support":
            assert (row.claim, "support") in labels
        else:
            assert any(row.claim.startswith(claim) and row.label == of for claim, of in labels)


def test_some_families_of_these_texts_are_never_trained_on() -> None:
    families = {one.family for one in INJECTIONS}
    assert set(FAMILIES) < families


def test_docstrings_are_read_with_the_names_that_they_are_of() -> None:
    found = list(islice(docstrings(), 100))
    assert any(one.startswith("abc.ABC: Helper class that provides") for one in found)
    assert all(": " in one for one in found)


def _rng(seed: int) -> random.Random:
    return random.Random(seed)
