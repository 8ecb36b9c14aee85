"""Test which quantities of a claim are missing from its evidence."""

from __future__ import annotations

import itertools
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.refchecker.quantities import missing_quantities

# -- the same in another form --------------------------------------------------------------------

SAME = [
    ["1,000", "1000", "1 000", "1\u202f000", "1.000", "1’000", "one thousand", "a thousand", "1k"],
    ["1.1 million", "1,100,000", "1.1m", "$1.1 million", "1,1 Millionen", "1.1 mln"],
    ["2.5 million", "two and a half million", "2½ million", "2 1/2 million", "2,500,000"],
    ["half a million", "500,000", "five hundred thousand", "0.5 million", "500k"],
    ["US$ 3.2bn", "3,200 million", "3.2 billion dollars", "€3.2 billion"],
    ["50 %", "50%", "50 percent", "fifty per cent", "half of", "50 Prozent", "0.5", "1/2", "½"],
    ["two thirds", "two-thirds", "2/3", "66.7 %"],
    ["1.234,5", "1,234.5", "1234.5"],
    ["12", "12th", "twelfth"],
    ["twenty-first", "21st", "21"],
    ["1984", "nineteen eighty-four"],
    ["1990s", "the nineties", "the '90s", "mid-1990s", "1990's"],
    ["19th century", "nineteenth century", "1800s"],
    ["3 May 1712", "May 3, 1712", "1712-05-03", "3rd of May 1712", "3.5.1712", "5/3/1712"],
    ["3 May", "May 3rd", "the 3rd of May"],
    ["5 km", "5 kilometres", "5,000 m", "five kilometers", "5km"],
    ["two years", "24 months", "2 years"],
    ["3 pm", "15:00", "3:00 p.m.", "3 PM", "3 o'clock", "3.00 pm"],
    ["5 to 7 million", "5–7 million", "5 million to 7 million"],
    ["World War 2", "World War Two"],
    ["٣٫١٤", "3.14", "３.１４", "३.१४", "3,14"],
    ["1.2億", "120,000,000", "120 million"],
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_another_form_of_the_same_quantity_is_found(forms: list[str]) -> None:
    missed = [
        (claim, evidence)
        for claim, evidence in itertools.product(forms, forms)
        if missing_quantities(f"It was {claim} then.", [f"There were {evidence}, they say."])
    ]
    assert missed == []


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("in May 1712", "on 3 May 1712"),
        ("in 1712", "on 3 May 1712"),
        ("on 4 May 2010", "May 3 and 4, 2010"),
        ("on 3 May 1712", "Born on 3 May. That was in 1712."),
        ("in 1999", "the season of 1998–99"),
        ("in the 1990s", "in 1994"),
        ("in the 19th century", "in 1850"),
        ("in his thirties", "aged 37"),
        ("5.3 million", "5,312,404"),
        ("67 %", "66.7 percent"),
        ("about 5,000", "4,987"),
        ("more than 400", "443"),
        ("less than $1 million", "$900,500"),
        ("the Second World War", "World War Two"),
        ("F 16", "the F-16"),
    ],
)
def test_a_less_exact_quantity_is_found_in_a_more_exact_one(claim: str, evidence: str) -> None:
    assert missing_quantities(claim, ["Nothing here.", evidence]) == ()


# -- another quantity ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "evidence", "missing"),
    [
        ("It opened in 1851.", "It opened in 1850.", ["1851"]),
        ("on 3 May 1712", "in May 1712", ["3 May 1712"]),
        ("in May 1712", "in 1712", ["May 1712"]),
        ("on 3 May 1740", "3 May 1712 and 7 June 1740", ["3 May 1740"]),
        ("in March", "in April", ["March"]),
        ("in 1994", "in the 1990s", ["1994"]),
        ("in the 1980s", "in 1994", ["1980s"]),
        ("in the 18th century", "in 1850", ["18th century"]),
        ("3 sons and 4 daughters", "three daughters", ["4"]),
        ("It cost $3,200.", "for $3 and $200", ["$3,200"]),
        ("5.4 million", "5,312,404", ["5.4 million"]),
        ("twenty-five", "twenty, five", ["twenty-five"]),
        ("60 % of them", "half of them", ["60 %"]),
        ("two thirds", "one third", ["two thirds"]),
        ("at 3 pm", "at 3 am", ["3 pm"]),
        ("1,000, then 1000", "none", ["1,000", "1000"]),
        ("Python 3.11.2", "Python 3.12.1", ["3.11.2"]),
        ("12345678901234567890", "12345678901234567891", ["12345678901234567890"]),
        ("more than 400", "390", ["400"]),
        ("up to 40 %", "30 days", ["40 %"]),
        ("It has 4.2KW.", "4.1 KW", ["4.2"]),
        ("It cost $4,000.", "four of them", ["$4,000"]),
        ("a fourth cousin", "four cousins on 4 May", ["fourth"]),
        ("人口は120万人", "人口は130万人", ["120万"]),
        ("١٧١٢ و ١٨١٢", "1712", ["١٨١٢"]),
    ],
)
def test_another_quantity_is_told_as_the_claim_writes_it(
    claim: str, evidence: str, missing: list[str]
) -> None:
    assert list(missing_quantities(claim, [evidence])) == missing


@pytest.mark.parametrize(
    "claim",
    [
        "A dog is one of the best, first of all.",
        "The two friends meet a couple of others.",
        "Louis XIV, COVID-19, B12, Python3, a U-21 side, 3D and MP3.",
        "May I march? He may.",
        "He said so [1], and again [2, 3].",
        "1. It is so.",
        "See https://example.org/2019/12.",
        "Hundreds of half-brothers, thousands even.",
        "",
    ],
)
def test_what_is_no_quantity_is_not_asked_for(claim: str) -> None:
    assert missing_quantities(claim, []) == ()


def test_evidence_may_stand_in_several_texts() -> None:
    texts = ["He was born on 3 May.", "In 1712 it rained."]
    assert missing_quantities("He was born on 3 May 1712.", texts) == ()
    assert missing_quantities("He was born on 3 May 1712.", []) == ("3 May 1712",)


# -- any text ------------------------------------------------------------------------------------

# fmt: off
PIECES = [
    "1", "12", "999", "1712", "000", "0", ".", ",", " ", "-", "–", "/", ":", "%", "'", "\n", "$",
    "May", "may ", "June ", "a ", "half ", "one ", "two ", "twenty", "hundred ", "million ",
    "third", "thirds ", "of ", "th ", "s ", "km ", "pm ", "century ", "about ", "more than ", "to ",
    "½", "²", "٣", "٫", "万", "年", "月", "B", "III ", "[", "]", "\x00", "\ud800", "😀", "and ",
]
# fmt: on
PROSE = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(PROSE | st.text(st.characters()), st.lists(PROSE | st.text(st.characters()), max_size=3))
def test_any_texts_have_a_result(claim: str, evidence: list[str]) -> None:
    missing = missing_quantities(claim, evidence)
    assert all(one.strip() and one in claim for one in missing)


@given(PROSE | st.text(st.characters()), PROSE, PROSE)
def test_no_quantity_is_missing_from_a_text_with_the_claim_in_it(
    claim: str, before: str, after: str
) -> None:
    assert missing_quantities(claim, [f"{before}\n\n{claim}\n\n{after}"]) == ()


WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
fifteen sixteen seventeen eighteen nineteen"
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety"


def in_words(number: int) -> str:
    for size, word in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            tail = (
                "" if not rest else f" and {in_words(rest)}" if rest < 100 else f" {in_words(rest)}"
            )
            return f"{in_words(number // size)} {word}{tail}"
    if number < 20:
        return WORDS.split()[number]
    tens = TENS.split()[number // 10]
    return f"{tens}-{in_words(number % 10)}" if number % 10 else tens


def digits_of(number: int, zero: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) for digit in str(number))


def forms_of(number: int) -> list[str]:
    """Return an integer in digits of several scripts, in groups, and in words."""
    grouped = [f"{number:,}".replace(",", sign) for sign in ",. '\u00a0\u202f"]
    return [*grouped, *(digits_of(number, zero) for zero in "0٠०０"), in_words(number)]


NUMBERS = st.integers(3, 999_999_999)


@given(NUMBERS, st.data())
def test_an_integer_in_any_form_is_found_in_any_other(number: int, data: st.DataObject) -> None:
    form = st.sampled_from(forms_of(number))
    claim, evidence = data.draw(form), data.draw(form)
    assert missing_quantities(f"It has {claim} trees.", [f"Of {evidence} trees, say."]) == ()


@given(NUMBERS, NUMBERS, st.data())
def test_another_integer_is_missing_in_any_form(
    number: int, other: int, data: st.DataObject
) -> None:
    # A number that is given in millions is rounded to millions.
    near = number // 10**6 == other // 10**6 or number % 10**6 == 0 or other % 10**6 == 0
    forms = [one for one in forms_of(number) if " " not in one or not near]
    claim = data.draw(st.sampled_from(forms))
    parts = {str(other // 10 ** (3 * at) % 1000) for at in range(3)}
    if number != other and str(number) not in parts and not near:
        assert missing_quantities(f"It has {claim} trees.", [f"Of {other} trees."]) == (claim,)


DATES = st.dates(date(1000, 1, 1), date(2099, 12, 31))
DATE_FORMS = [
    *("{d} {month} {y}", "{month} {d}, {y}", "{y}-{m:02}-{d:02}", "{d:02} {short} {y}"),
    *("{d}{th} of {month} {y}", "{short}. {d}, {y}", "{d}.{m}.{y}", "{y}/{m:02}/{d:02}"),
]


def written(day: date, form: str) -> str:
    month = day.strftime("%B")
    th = {1: "st", 2: "nd", 3: "rd"}.get(0 if 10 < day.day < 14 else day.day % 10, "th")
    return form.format(d=day.day, m=day.month, y=day.year, month=month, short=month[:3], th=th)


@given(DATES, st.sampled_from(DATE_FORMS), st.sampled_from(DATE_FORMS))
def test_a_date_in_any_form_is_found_in_any_other(day: date, form: str, other: str) -> None:
    evidence = [f"It was on {written(day, other)}, at noon."]
    assert missing_quantities(f"On {written(day, form)} it began.", evidence) == ()
    assert missing_quantities(f"It began in {day:%B} {day.year}.", evidence) == ()


@given(DATES, DATES, st.sampled_from(DATE_FORMS), st.sampled_from(DATE_FORMS))
def test_another_date_is_missing(day: date, another: date, form: str, other: str) -> None:
    swapped = (another.year, another.day, another.month)
    if day != another and (day.year, day.month, day.day) != swapped:
        (found,) = missing_quantities(f"On {written(day, form)}", [written(another, other)])
        assert found == written(day, form)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["1 ", "1.", "1-", "May 1 ", "one-", "hundred ", "[1,", "1万"])
def test_a_long_text_takes_no_time_by_its_square(piece: str) -> None:
    text = piece * (80_000 // len(piece))
    missing_quantities(text, [text + "."])  # In quadratic time this takes longer than a test may.
