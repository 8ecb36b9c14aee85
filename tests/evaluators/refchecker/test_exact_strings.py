"""Test that a claim with a string that stands in no reference is not supported."""

from __future__ import annotations

import itertools
import string
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demur import Cascade, ClaimLabel, Evaluation, MissingString, RefChecker, Sample
from demur.evaluators.refchecker.exact_strings import missing_strings
from demur.guard import Feedback
from support.fakes import scripted


def missing(claim: str, *texts: str) -> list[str]:
    return [one.string for one in missing_strings(claim, texts)]


# -- The same in another form ----------------------------------------------------------------------

SAME = [
    ["ORD-48213-B", "ord 48213 b", "ORD48213B", "Ord_48213-b"],
    ["DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "DE89-3704-0044-0532-0130-00"],
    ["LH1478", "LH 1478", "lh-1478"],
    ["v2.13.1", "2.13.1", "V2.13.1"],
    ["https://www.example.org/a/b3/", "example.org/a/b3", "http://example.org/a/b3"],
    ["json.dumps", "json.dumps()", "`json.dumps`"],
    ["+44 20 7946 0185", "44-20-7946-0185", "442079460185"],
    ["12,500", "12.500", "12 500", "12\u202f500", "12'500", "12500", "12.5 thousand"],
    ["€1,234.50", "1.234,50 €", "1 234,50", "1234.5", "1234.50"],
    ["1.25 million", "1,250,000", "1,25 Mio.", "125万"],
    ["14:30", "2:30 pm", "14 h 30", "14h30", "14点30分", "14 Uhr 30"],
    ["１２.３４", "12.34", "12,34"],
    ["1.5 kg", "1,500 g", "1500 Gramm"],
    ["250 Ko", "250 kB", "0.25 megabytes"],
    ["90 minutes", "1.5 Stunden", "1,5 h"],
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_another_form_of_the_same_string_is_found(forms: list[str]) -> None:
    missed = [
        (claim, text)
        for claim, text in itertools.permutations(forms, 2)
        if missing(f"It was {claim} then.", f"They say {text}, or so.")
    ]
    assert missed == []


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("It is 85.2 % or 85.19 %.", "It is 85.194 %."),
        ("About 4,300 came.", "4,297 came."),
        ("The flight is 1478.", "The flight is LH1478."),
        ("It cost 500 dollars.", "It cost five hundred dollars."),
        ("The host is 10.20.4.17.", "The host is 10.20.4.17:443."),
        ("It begins at 5:30 PM.", "It begins at 530 pm."),
        ("Gate B14 is open.", "Gates: A3, B14, C9."),
    ],
)
def test_a_rounding_a_word_and_a_part_are_found(claim: str, text: str) -> None:
    assert missing(claim, text) == []


@pytest.mark.parametrize(
    "claim",
    [
        "It began in 1984, in the 1990s or mid-1850s, on 3 May 2021 or 2021-05-03 or 3.5.2021.",
        "The 12 of them took 2 days, the 20th time, in the 19th century.",
        "A 24-hour shift, a 5-year plan and 3-1 in the season of 2019/20.",
        "Mr. Smith, e.g. of the U.S., read and/or wrote it at 3 pm or 15:00.",
        "A well-known Anglo-Saxon name. McDonald and iOS.",
        "Am 31.10. und am 3. November.",
        "x" * 300 + "1",
    ],
)
def test_what_is_left_to_the_judge_is_not_sought(claim: str) -> None:
    assert missing(claim, "Nothing of it.") == []


# -- Another string --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "text", "strings"),
    [
        ("ORD-48231-B shipped.", "ORD-48213-B shipped.", ["ORD-48231-B"]),
        ("ORD-4821-B shipped.", "ORD-48213-B shipped.", ["ORD-4821-B"]),
        ("The host is 10.20.4.1.", "The host is 10.20.4.17.", ["10.20.4.1"]),
        ("Version 2.13.1 works.", "Version 2.13.10 and 12.13.1 work.", ["2.13.1"]),
        ("Call json.dump_s first.", "Call json.dumped_s first.", ["json.dump_s"]),
        ("Set MAX_RETRY.", "Set MAX_RETRIES.", ["MAX_RETRY"]),
        ("Call setTimeOuts.", "Call setTimeout.", ["setTimeOuts"]),
        ("Mail to care@honey.example.", "Mail to core@honey.example.", ["care@honey.example"]),
        ("See /etc/host/a.", "See /etc/hosts/a.", ["/etc/host/a".removeprefix("/")]),
        ("Send X-Harbour-Key.", "Send X-Harbor-Key.", ["X-Harbour-Key"]),
        ("CVE-2024-3095 is it.", "CVE-2024-3094 is it.", ["CVE-2024-3095"]),
        ("Pay 31.20 or 1,200.", "Pay 32.10 or 12,000.", ["31.20", "1,200"]),
        ("It is 1.5 km or 120 m.", "It is 15 km or 1,200 m.", ["1.5", "120"]),
        ("Take 500 g, or 75 ml.", "Take 500 mg, or 7.5 ml.", ["500", "75"]),
        ("It is 83 % or $45.", "It is 85 % or $54.", ["83", "45"]),
        ("At 14:30, they say.", "At 14:40, they say.", ["14:30"]),
        ("Call 555-0412.", "Call 555-0142.", ["555-0412"]),
        ("注文番号はORD-48231-Bです。", "注文番号はORD-48213-Bです。", ["ORD-48231-B"]),
        ("Заказ ЗК-4812 ушёл.", "Заказ ЗК-4821 ушёл.", ["ЗК-4812"]),
    ],
)
def test_a_string_that_is_wrong_by_one_character_is_missing(
    claim: str, text: str, strings: list[str]
) -> None:
    assert missing(claim, "Something else.", text) == strings


def test_a_number_of_hundreds_of_digits_is_no_error() -> None:
    long = f"1{'0' * 500}"
    assert missing(f"It is {long} or 123.", f"It is {long}, or 124.") == ["123"]
    assert missing(f"It is 1{'0' * 150} or 123.", "It is 124.") == [f"1{'0' * 150}", "123"]


CODES = st.from_regex(r"[A-Z]{2,4}-[0-9]{3,6}(-[A-Z])?", fullmatch=True)


@given(CODES, st.data())
def test_a_code_is_found_where_it_stands_and_missing_with_another_character(
    code: str, data: st.DataObject
) -> None:
    text = f"The number is {code}, as you know."
    assert missing(f"It is {code.lower().replace('-', ' ')}.", text) == []
    at = data.draw(st.sampled_from([at for at, sign in enumerate(code) if sign.isdigit()]))
    other = data.draw(st.sampled_from(string.digits))
    assume(other != code[at])
    wrong = code[:at] + other + code[at + 1 :]
    assert missing_strings(f"It is {wrong}.", [text]) == (
        MissingString(string=wrong, nearest=code),
    )


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_any_text_has_missing_strings_of_its_own(claim: str, texts: list[str]) -> None:
    for one in missing_strings(claim, texts):
        assert one.string in claim
        assert one.nearest is None or any(one.nearest in text for text in texts)
    assert missing_strings(claim, [claim]) == ()


# -- What RefChecker makes of it -------------------------------------------------------------------

SHIPPED = "Order ORD-48213-B left the depot on 6 May."


def check(answer: str, **fields: Any) -> Evaluation:
    fields = {"contexts": [SHIPPED], **fields}
    model = scripted("", claim="Entailment")
    checker = RefChecker(model, claims="sentences", checker="per_claim")
    return checker.invoke(Sample(answer=answer, **fields))


def test_a_claim_that_the_judge_supports_is_neutral_and_says_why() -> None:
    found = check("Order ORD-48213-B is on its way. Order ORD-48231-B left on 6 May.")
    assert [claim.label for claim in found.claims] == [ClaimLabel.ENTAILMENT, ClaimLabel.NEUTRAL]
    (why,) = found.claims[1].missing_strings
    assert str(why) == (
        '"ORD-48231-B" stands in no reference, where "ORD-48213-B" is the most similar'
    )
    assert found.passed is False
    assert found.claims[1].evidence == ()
    assert str(why) in str(found)
    told = Feedback(question=None, answer=found.name, evaluations=(found,))
    assert str(why) in told.text


def test_the_question_and_the_reference_hold_strings_too() -> None:
    wrong = "Order ORD-48231-B left on 6 May."
    assert check(wrong).passed is False
    assert check(wrong, question="Where is ORD-48231-B?").passed is True
    assert check(wrong, reference="See ORD-48231-B.").passed is True


def test_a_block_of_code_may_name_its_own_things() -> None:
    assert check("Do this:\n\n```\nmy_value = load(file_1234)\n```").passed is True
    assert check("Do my_value first.").passed is False


def test_a_stage_of_a_cascade_is_sure_of_a_missing_string() -> None:
    model = scripted("", claim="Entailment")
    asked = scripted("", claim="Entailment")
    first, last = (
        RefChecker(one, claims="sentences", checker="per_claim") for one in (model, asked)
    )
    wrong = {"answer": "Order ORD-48231-B left on 6 May.", "contexts": [SHIPPED]}
    assert Cascade([first, last]).invoke(wrong).passed is False
    assert asked.requests == []
