"""Test that replies are read in every form that models choose."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators import Pairs, normalized_text
from demur.evaluators.fewl.parsing import parse_agreement, parse_answers, parse_pairs

# --- Pairs ---------------------------------------------------------------------------------------

TWO = (("It rains fish.", "No fish falls."), ("It is dry.", "It is wet."))


PAIR_FORMS = {
    "the papers' template": """\
1. Wrong Answer: It rains fish.
1. Non-Wrong Answer: No fish falls.
2. Wrong Answer: It is dry.
2. Non-Wrong Answer: It is wet.""",
    "on one line": "1. Wrong Answer: It rains fish. 1. Non-Wrong Answer: No fish falls. "
    "2. Wrong Answer: It is dry. 2. Non-Wrong Answer: It is wet.",
    "markdown around the number, quotes": """\
**1. Wrong Answer**: "It rains fish."
**1. Non-Wrong Answer**: "No fish falls."
**2. Wrong Answer**: "It is dry."
**2. Non-Wrong Answer**: "It is wet." """,
    "corrected": """\
### 1) Wrong answer: It rains fish.
- Corrected Answer: No fish falls.
### 2) Wrong answer: It is dry.
- Corrected Answer: It is wet.""",
    "no numbers": """\
Wrong Answer: It rains fish.
Non-Wrong Answer: No fish falls.
Wrong Answer: It is dry.
Non-Wrong Answer: It is wet.""",
    "counted through": """\
1. Incorrect answer: It rains fish.
2. Correct answer: No fish falls.
3. Incorrect answer: It is dry.
4. Correct answer: It is wet.""",
    "all wrong first": """\
1. Wrong Answer: It rains fish.
2. Wrong Answer: It is dry.
1. Non-Wrong Answer: No fish falls.
2. Non-Wrong Answer: It is wet.""",
    "wrapped": """\
1. Wrong Answer: It rains
fish.
1. Non Wrong Answer:
No fish falls.
2. WRONG ANSWER : It is dry.
2. Not-wrong answer: It is wet.""",
    "other hyphens, numbers on their own": """\
1. Wrong Answer: It rains fish.
1. Non\u2010Wrong Answer: No fish falls.
2.
Wrong Answer: It is dry.
2.
Non\u2013Wrong Answer: It is wet.""",
}


@pytest.mark.parametrize("reply", PAIR_FORMS.values(), ids=PAIR_FORMS)
def test_pairs_are_read_in_many_forms(reply: str) -> None:
    assert parse_pairs(reply) == Pairs(TWO)


def test_a_wrong_answer_may_speak_of_itself() -> None:
    reply = """\
1. Wrong Answer: They gave the wrong answer: it was a fox, or the correct answer: a cat.
1. Non-Wrong Answer: Nobody called a right answer: wrong."""
    wrong, corrected = (line.partition("Answer: ")[2] for line in reply.splitlines())
    assert parse_pairs(reply) == Pairs(((wrong, corrected),))


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        ("3. Wrong Answer: IT RAINS  fish!\n3. Non-Wrong Answer: no fish falls", {"repeated": 1}),
        ("3. Wrong Answer: It's 5\u00b0.\n3. Non-Wrong Answer: it\u2019s 5\u00b0!", {"same": 1}),
        ("3. Wrong Answer: Snow.", {"incomplete": 1}),
        ("3. Non-Wrong Answer: Snow.", {"incomplete": 1}),
        ("3. Wrong Answer: [...]\n3. Non-Wrong Answer: \u2026", {"incomplete": 1}),
        ("3. Wrong Answer:\n3. Non-Wrong Answer: Snow.", {"incomplete": 1}),
        ("3. Wrong Answer: Snow.\n4. Non-Wrong Answer: Hail.", {"incomplete": 2}),
    ],
)
def test_what_is_dropped_is_counted(reply: str, dropped: dict[str, int]) -> None:
    template = (
        f"{number}. Wrong Answer: {wrong}\n{number}. Non-Wrong Answer: {corrected}"
        for number, (wrong, corrected) in enumerate(TWO, 1)
    )
    assert parse_pairs("\n".join([*template, reply])) == Pairs(TWO, **dropped)


def test_the_last_side_of_a_cut_reply_does_not_count() -> None:
    reply = (
        "1. Wrong Answer: A.\n1. Non-Wrong Answer: B.\n2. Wrong Answer: C.\n2. Non-Wrong Answer: N"
    )
    assert parse_pairs(reply).usable == (("A.", "B."), ("C.", "N"))
    assert parse_pairs(reply, truncated=True) == Pairs((("A.", "B."),), incomplete=1)
    assert parse_pairs("", truncated=True) == Pairs()


@pytest.mark.parametrize("reply", ["", "I cannot do that.", "Wrong.", "1. A.\n2. B."])
def test_a_reply_without_pairs_gives_none(reply: str) -> None:
    assert parse_pairs(reply) == Pairs()


TEXT = st.text("abc xyz,.\u00e9\u0916\u093f5", min_size=1, max_size=20).map(
    lambda text: " ".join(text.split())
)
SAID = TEXT.filter(lambda text: bool(normalized_text(text)))


@given(st.lists(st.tuples(SAID, SAID), max_size=6))
def test_what_is_written_in_the_template_is_read(pairs: list[tuple[str, str]]) -> None:
    reply = "\n".join(
        f"{number}. Wrong Answer: {wrong}\n{number}. Non-Wrong Answer: {corrected}"
        for number, (wrong, corrected) in enumerate(pairs, 1)
    )
    found = parse_pairs(reply)
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for pair in pairs:
        key = normalized_text(pair[0]), normalized_text(pair[1])
        if key[0] != key[1]:
            seen.setdefault(key, pair)
    assert found.usable == tuple(seen.values())
    assert found.same == sum(normalized_text(a) == normalized_text(b) for a, b in pairs)
    assert len(found.usable) + found.same + found.repeated == len(pairs)
    assert found.incomplete == 0


@given(st.text(max_size=200), st.booleans(), st.integers(1, 5))
def test_nothing_a_model_writes_raises(reply: str, truncated: bool, n: int) -> None:
    for wrong, corrected in parse_pairs(reply, truncated).usable:
        assert normalized_text(wrong) != normalized_text(corrected)
    assert len(parse_answers(reply, n, truncated)) <= n
    assert all(answer.strip() for answer in parse_answers(reply, n, truncated))
    assert len(parse_agreement(reply, n)) == n


@pytest.mark.parametrize("run", ["\n", "*", " ", "**\n", "- ", "1.\n", "wrong ", "_ ", "> \n"])
def test_an_endless_run_takes_no_endless_time(run: str) -> None:
    # With two repetitions that fit the same characters, this would take hours.
    for reply in (f"1{run * 5000}", run * 5000, f"wrong answer{run * 5000}"):
        parse_pairs(reply)
        parse_answers(reply, 5)
        parse_agreement(reply, 5)


# --- Normalising ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris.", "paris"),
        ("It's  so", "it\u2019s so!"),
        ("caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")),
        ("STRASSE", "stra\u00dfe"),
    ],
)
def test_texts_that_say_the_same_are_the_same(one: str, other: str) -> None:
    assert normalized_text(one) == normalized_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "6"),
        ("\u0915\u093f", "\u0915\u093e"),
        ("C", "C++"),
        ("$5", "\u20ac5"),
    ],
)
def test_texts_that_say_something_else_are_not(one: str, other: str) -> None:
    assert normalized_text(one) != normalized_text(other)


# --- Answers -------------------------------------------------------------------------------------


ANSWER_FORMS = {
    "numbered": "1. Paris.\n2. Lyon, I think.\n3. Nice.",
    "markdown": "Here are three answers:\n\n**1.** Paris.\n\n**2.** Lyon, I think.\n\n**3.** Nice.",
    "Answer 1:": "Answer 1: Paris.\nAnswer 2: Lyon, I think.\nAnswer 3: Nice.",
    "bullets": "* Paris.\n* Lyon,\n  I think.\n* Nice.",
    "announced lines": "Here they are:\nParis.\nLyon, I think.\nNice.",
    "quotes": '1. "Paris."\n2. \u201cLyon, I think.\u201d\n3. [Nice.]',
    "emphasis": "1. *Paris.*\n2. **Lyon, I think.**\n3. _Nice._",
}


@pytest.mark.parametrize("reply", ANSWER_FORMS.values(), ids=ANSWER_FORMS)
def test_answers_are_read_in_many_forms(reply: str) -> None:
    assert parse_answers(reply, 3) == ("Paris.", "Lyon, I think.", "Nice.")
    assert parse_answers(reply, 2) == ("Paris.", "Lyon, I think.")


def test_numbers_within_an_answer_begin_none() -> None:
    reply = "1. First came 2. then 3.\n2. At 12:30,\n12:45 and\n3.5 million."
    assert parse_answers(reply, 5) == ("First came 2. then 3.", "At 12:30, 12:45 and 3.5 million.")
    assert parse_answers("3.5 million\n4.5 million", 5) == ("3.5 million", "4.5 million")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Paris.", "Paris."),
        ("1. Paris.", "Paris."),
        ("Answer: Paris.", "Paris."),
        ("Paris,\nin France.\n", "Paris, in France."),
        ("Two reasons:\n1. Cold.\n2. Rain.", "Two reasons: 1. Cold. 2. Rain."),
        ("1.", "1."),
        ('"Paris."', "Paris."),
        ('"A" or "B"', '"A" or "B"'),
    ],
)
def test_the_one_answer_is_the_whole_reply(reply: str, answer: str) -> None:
    assert parse_answers(reply, 1) == (answer,)
    assert parse_answers(reply, 1, truncated=True) == (answer,)


def test_the_last_answer_of_a_cut_reply_does_not_count() -> None:
    assert parse_answers("1. Paris.\n2. Ly", 5, truncated=True) == ("Paris.",)
    assert parse_answers("1. Par", 5, truncated=True) == ("Par",)


@pytest.mark.parametrize("reply", ["", " \n ", "**", "1. \n2. "])
def test_a_reply_without_answers_gives_none(reply: str) -> None:
    assert parse_answers(reply, 5) == ()


# --- Yes or no -----------------------------------------------------------------------------------


VERDICT_FORMS = {
    "as asked": "1. yes\n2. no\n4. Yes",
    "markdown": "**1.** yes\n**2.** no\n**4.** yes",
    "named behind": "1. Statement: yes\n2. Statement: no\n4. Statement: yes",
    "bullets": "- 1. yes\n- 2. no\n- 4. yes",
    "corrected": "1. no\n2. no\n4. yes\n1. yes",
    "on their own lines": "1.\nyes\n2.\nno\n4.\nyes",
    "no word": "1. yes\n2. no\n3. yesterday\n4. yes",
}


@pytest.mark.parametrize("reply", VERDICT_FORMS.values(), ids=VERDICT_FORMS)
def test_verdicts_are_read_in_many_forms(reply: str) -> None:
    assert parse_agreement(reply, 4) == (True, False, None, True)


@pytest.mark.parametrize("reply", ["", "Yes to all.", "All agree: 1, 2, 3."])
def test_what_is_no_verdict_counts_as_none(reply: str) -> None:
    assert parse_agreement(reply, 3) == (None, None, None)
