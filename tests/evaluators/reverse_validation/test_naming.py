"""Test that a name is found in every spelling, and not where another name is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.naming import named_in

NAMED = [
    ("Mary Anning", "It was mary anning."),
    ("François Mitterrand", "Francois Mitterrand, who was born in Jarnac"),
    ("Emperor Ōjin", "The entity is Ojin (応神天皇)."),
    ("Sprague–Grundy theorem", "the Sprague-Grundy theorem"),
    ("Meatball Wiki", "MeatballWiki"),
    ("J.R.R. Tolkien", "This is J. R. R. Tolkien."),
    ("Flann O'Brien", "Flann O’Brien wrote it"),
    ("Metis (mythology)", "Metis."),
    ("Sir John Soane", "John Soane, the architect"),
    ("Smith, John", "The entity is John Smith."),
    ("John Smith", "Smith, John"),
    ("Albert, Margrave of Meissen", "It is Margrave Albert of Meissen."),
    ("National Hockey League", "The NHL matches 100%."),
    ("NHL", "the National Hockey League"),
    ("Organisation for the Prohibition of Chemical Weapons", "OPCW"),
    ("Elementary function", "Elementary functions."),
    ("ERA", "ERA (Earned Run Average)"),
    ("Microsoft", "Microsoft Corporation meets all of it."),
    ("Draco", "Draco, an Athenian."),
    ("Chess", "Entity: Chess\nPercentage: 90%"),
    ("東京", "答えは東京です。"),
    ("1984", "The novel 1984."),
    ("C (programming language)", "The language is C."),
    ("Not Without My Daughter", "It is Not Without My Daughter."),
    ("Hoy", "Not only Hoy"),
    ("Hoy", "I do not. Hoy."),
    ("Hoy", "Hoy does not meet one, and still the best is Hoy."),
    ("Hoy", "Hoy is not only an island"),
    ("Hoy", "Hoy\nIt fails nothing."),
    ("No Country for Old Men", "It is No Country for Old Men."),
    ("Not Fade Away", "It is Not Fade Away, a film."),
    (
        "\u05d9\u05e8\u05d5\u05e9\u05dc\u05d9\u05dd",
        "\u05d6\u05d5 \u05d9\u05e8\u05d5\u05e9\u05dc\u05d9\u05dd.",
    ),
    ("Hoy \U0001f3dd", "Hoy"),
    ("50 Cent", "It is 50 Cent, by 90%."),
    ("The Gold Pan", "It is the film Gold Pan."),
]
NOT_NAMED = [
    ("The Gold Pan", "the Oregon Gold Pan of 1849"),
    ("The Guild", "They had a guild."),
    ("Ann", "Annapolis"),
    ("Draco", "Draco Malfoy"),
    ("Broch", "The entity is Hermann Broch."),
    ("ERA", "It was the end of an era."),
    ("1984", "19845"),
    ("Frederick I, Holy Roman Emperor", "Frederick II"),
    ("Washington County, Florida", "Washington County, Ohio"),
    ("King Arthur", "They saw arthur."),
    ("John Smith", "Smith John"),
    ("NHL", "New homes in London"),
    ("Metis (mythology)", "mythology"),
    ("Long Name of a Thing (band)", "It is called band."),
    ("東京", "京都"),
    ("Mary Anning", ""),
    ("Hoy", "It is not Hoy."),
    ("Arthur", "not King Arthur"),
    ("Mary Anning", "Neither Mary Anning nor Ann Lee"),
    ("Hoy", "Skye rather than Hoy"),
    ("Hoy", "an island other than Hoy"),
    ("National Hockey League", "It is not the NHL."),
    ("It", "What is it?"),
    ("C (programming language)", "vitamin c"),
    ("Hoy", "Hoy does not meet the requirements."),
    ("Hoy", "No entity meets all; Hoy does not"),
    ("Hoy", "Hoy is not the entity."),
    ("Hoy", "I considered Hoy, but it fails."),
    ("Hoy", "Hoy meets none of them."),
    ("Hoy", "Hoy is ruled out."),
    ("Hoy", "**Hoy** is clearly wrong"),
    ("Hoy", "It is not **Hoy**."),
    ("Hoy", "I ruled out Hoy."),
    ("Mary Anning", "Anning, Mary is wrong."),
    ("National Hockey League", "The NHL does not meet all."),
    ("Fade Away", "Not Fade Away"),
]


@pytest.mark.parametrize(("entity", "text"), NAMED)
def test_a_name_is_found_however_it_is_written(entity: str, text: str) -> None:
    assert named_in(entity, text)


@pytest.mark.parametrize(("entity", "text"), NOT_NAMED)
def test_another_name_is_not_taken_for_it(entity: str, text: str) -> None:
    assert named_in(entity, text) is None


WORD = st.from_regex(r"[A-Z][a-z]{3,9}", fullmatch=True)
NAME = st.lists(WORD, min_size=2, max_size=4).map(" ".join)
ANYTHING = st.text(max_size=60)


@settings(max_examples=20)
@given(NAME, ANYTHING, ANYTHING)
def test_a_name_of_several_words_is_found_in_any_text_around_it(
    name: str, before: str, after: str
) -> None:
    assert named_in(name, f"{before}\n{name}\n{after}")


@settings(max_examples=20)
@given(NAME, st.sampled_from(["\u0301", "\u0308", "\u0327", "\u030c"]), st.integers(0, 40))
def test_diacritics_do_not_count_composed_or_not(name: str, mark: str, at: int) -> None:
    at = at % len(name) + 1
    marked = name[:at] + mark + name[at:]
    for form in ("NFC", "NFD"):
        assert named_in(unicodedata.normalize(form, marked), name)
        assert named_in(name, unicodedata.normalize(form, marked))


@given(WORD, st.from_regex(r"[a-z]{2,5}", fullmatch=True).filter(lambda tail: tail != "s"))
def test_a_word_is_not_found_in_a_longer_one(word: str, tail: str) -> None:
    assert named_in(word, f"It is {word}{tail} then") is None
    assert named_in(word, f"It is {tail}{word.lower()} then") is None


@given(ANYTHING, ANYTHING)
def test_any_text_is_looked_through_and_what_is_found_is_told(entity: str, text: str) -> None:
    try:
        found = named_in(entity, text)
    except ValueError:
        assert not any(character.isalnum() for character in entity)
    else:
        assert found is None or found.strip()


@settings(max_examples=20)
@given(
    NAME, st.sampled_from(["not", "never", "rather than", "unlike"]), st.sampled_from(["", "the "])
)
def test_a_name_behind_a_denial_is_not_named(name: str, denial: str, article: str) -> None:
    assert named_in(name, f"It is {denial} {article}{name}.") is None
    assert named_in(name, f"It is {denial} Skye. It is {article}{name}.")


@settings(max_examples=20)
@given(
    NAME,
    st.sampled_from(["does not meet", "isn't it", "fails", "is wrong", ", but it does not match"]),
    st.sampled_from([" requirement 2.", ".", ""]),
)
def test_a_name_before_a_denial_is_not_named(name: str, denial: str, end: str) -> None:
    assert named_in(name, f"Well, {name} {denial}{end}") is None
    assert named_in(name, f"Skye {denial}. It is {name}.")


@pytest.mark.parametrize("entity", ["", "  ", '"', "()"])
def test_an_entity_without_a_name_is_refused(entity: str) -> None:
    with pytest.raises(ValueError, match="pass its name"):
        named_in(entity, "anything")
