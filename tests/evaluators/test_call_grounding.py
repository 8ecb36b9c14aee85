"""Test that values of a call's arguments which nobody gave are found, and right ones are not."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from demur import ClaimLabel, Sample
from demur.evaluators import CallGrounding, MissingValue, missing_values
from demur.shapes import given_texts

TODAY = date(2026, 3, 12)  # a Thursday


def paths(
    args: dict[str, Any], *texts: str, tool: str = "act", schema: Any = None, **options: Any
) -> list[str]:
    """Return the paths of the values that the texts do not give."""
    options = {"today": TODAY, **options}
    found = missing_values({"name": tool, "args": args}, schema or {}, texts, **options)
    return [one.path for one in found]


# -- Values that were given, or not ----------------------------------------------------------------

SAME: Any = {
    "an identifier": ("order_id", "ORD-48231", "ORD-48213", "about ord 48231 please"),
    "an IBAN with spaces": (
        *("iban", "DE89370400440532013000", "DE89370400440532031000"),
        "to DE89 3704 0044 0532 0130 00",
    ),
    "a phone number without its country": (
        *("phone", "+49 176 4455 0192", "+49 176 4455 0129"),
        "my mobile: 0176 44550192",
    ),
    "an address in capitals": ("to", "eva@nord.example", "eva.r@nord.example", "EVA@Nord.Example"),
    "an address as it is spoken": (
        *("email", "eva@nord.example", "eve@nord.example"),
        "eva at nord dot example",
    ),
    "a version": ("version", "2.14.3", "2.14.4", "go back to v2.14.3"),
    "a name without accents": ("customer_name", "Zoë Müller", "Zoë Möller", "for Zoe Muller's cat"),
    "an amount": ("amount", 31.2, 32.1, "it was € 31.20"),
    "an amount in thousands": ("price", 315000, 351000, "offer 315k"),
    "an amount with another comma": ("amount", 1250.5, 1205.5, "1.250,50 euro"),
    "a path of its parts": ("path", "/srv/a/run.sh", "/srv/a/go.sh", "in /srv/a is:\nrun.sh"),
    "a file of Windows": ("path", "C:\\tmp\\a1.txt", "C:\\tmp\\a2.txt", "a1.txt is in C:\\tmp"),
    "an id behind a base": (
        *("url", "https://x.example/trips/77120/seats?per_page=50"),
        *("https://x.example/trips/77121/seats", "trip 77120, see https://x.example/trips"),
    ),
    "a date in words": ("on", "2026-07-23", "2026-05-24", "on 23 July"),
    "a code under any name": ("thing", "QX7R2M", "QX7R2N", "book QX7R2M"),
}


@pytest.mark.parametrize(("name", "right", "wrong", "text"), SAME.values(), ids=SAME)
def test_a_value_may_be_written_otherwise_but_not_be_another(
    name: str, right: Any, wrong: Any, text: str
) -> None:
    assert paths({name: right}, "Hello.", text) == []
    assert paths({name: wrong}, "Hello.", text) == [name]
    assert paths({name: right}, "Hello.") == [name]


FOLLOWING: Any = {
    "a product": ({"amount": 17.8, "quantity": 2}, "2 of them at 8.90 each"),
    "a total of three": ({"total": 130.5}, "- a: 20.00\n- b: 50.50\n- c: 60.00"),
    "a difference": ({"refund": 412.35}, "all above 500 of 912.35"),
    "a share": ({"amount": 133.33}, "400 dollars among three of us"),
    "a percentage": ({"discount": 12.6}, "84.00, and I have 15 % off"),
    "a rate in a year": ({"amount": 50}, "600 a year"),
    "a percentage in hundredths": ({"commission_rate": 0.03, "price": 9}, "3 percent of 9"),
    "cents": ({"amount": 12350}, "123.50"),
    "binary units": ({"memory_mb": 4096}, "4 GB"),
    "a total of another argument": (
        {"total": 1356.6, "vat": 216.6, "net": 1140, "quantity": 12},
        "12 pieces at 95 plus 19 % VAT",
    ),
}


@pytest.mark.parametrize(("args", "text"), FOLLOWING.values(), ids=FOLLOWING)
def test_a_number_may_follow(args: dict[str, Any], text: str) -> None:
    assert paths(args, text, question=text) == []
    wrong = {name: 7 * value + 1 if value > 12 else value for name, value in args.items()}
    if wrong != args:
        assert paths(wrong, text, question=text)


@pytest.mark.parametrize(
    ("day", "text"),
    [
        ("2026-03-20", "next Friday"),
        ("2026-03-31", "at the end of the month"),
        ("2026-04-22", "on the 22nd of next month"),
        ("2026-06-30", "the second quarter"),
        ("2026-09-10", "in six months"),
        ("2026-07-03", "30 days after the delivery on June 3"),
        ("2027-03-12", "for a year"),
        ("2026-W33", "some week"),
    ],
)
def test_a_date_may_follow_from_today_or_from_what_was_said(day: str, text: str) -> None:
    assert paths({"on": day}, text, question=text) == []


def test_a_number_in_words_may_be_any() -> None:
    assert paths({"amount": 96}, "ninety-six", question="ninety-six") == []
    assert paths({"amount": 96}, "some", question="some") == ["amount"]


def test_a_date_that_follows_from_nothing_is_missing() -> None:
    assert paths({"on": "2026-06-18T10:00"}, "on 9 April") == ["on"]


FREE: Any = {
    "texts": {"subject": "Hi 12345", "body": "Call ORD-99999", "query": "ORD-99999"},
    "code": {"sql": "SELECT 17771 FROM a.b", "code": "x = 17771\nprint(x)"},
    "settings": {
        "limit": 17771,
        "page_size": 333,
        "sort_by": "created-1",
        "timezone": "Asia/Tokyo",
    },
    "truth values and small numbers": {"draft": True, "guests": 4, "nothing": None},
    "times of day": {"time": "19:30", "window": "13:00-17:00"},
    "other names": {"calendar_id": "primary", "branch": "main", "user": "me", "base": "HEAD~1"},
    "keys that the model makes": {"idempotency_key": "refund-99812-1"},
    "words in place of a number": {"account": "checking", "reason": "damaged_item"},
}


@pytest.mark.parametrize("args", FREE.values(), ids=FREE)
def test_what_the_model_may_choose_is_not_sought(args: dict[str, Any]) -> None:
    assert paths(args, "Hello.") == []


def test_what_is_made_may_be_named_and_people_may_not() -> None:
    assert paths({"path": "notes/day-12345.md"}, "Hello.", tool="write_file") == []
    assert paths({"path": "notes/day-12345.md"}, "Hello.", tool="delete_file") == ["path"]
    assert paths({"name": "Ulf Zander"}, "Hello.", tool="create_user") == ["name"]
    assert paths({"name": "Apollo"}, "Hello.", tool="create_project") == []


@pytest.mark.parametrize(
    "value", ["<order id>", "[Customer Name]", "your_account_id", "TODO", "ORD-XXXXX", "ORDER_ID"]
)
def test_a_placeholder_never_passes(value: str) -> None:
    assert paths({"order_id": value}, f"It is {value}.") == ["order_id"]


@pytest.mark.parametrize("value", ["john.doe@example.com", "000000000", "Jane Doe"])
def test_an_example_passes_only_if_it_was_given(value: str) -> None:
    assert paths({"account_holder_email": value}, "Hello.") == ["account_holder_email"]
    assert paths({"account_holder_email": value}, f"Take {value}.") == []


@pytest.mark.parametrize(
    "text", ["Your order is on its way", '{"a": [1]}', "[]", "<p>Hi</p>", "<@U02MIA11>"]
)
def test_a_text_is_no_placeholder(text: str) -> None:
    assert paths({"message": text}, "Hello.") == []


# -- Schemas and settings --------------------------------------------------------------------------


def test_the_schema_says_what_may_be_chosen() -> None:
    size = {"enum": ["XL-2000", "S-1000"]}
    schema = {
        "$defs": {"Size": size},
        "properties": {
            "sku": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]},
            "plan": {"default": "PLAN-7000"},
            "lines": {"items": {"properties": {"sku": {"$ref": "#/$defs/Size"}}}},
        },
    }
    args = {"sku": "XL-2000", "plan": "PLAN-7000", "lines": [{"sku": "S-1000"}, {"sku": "S-9000"}]}
    assert paths(args, "Hello.", schema=schema) == ["lines[1].sku"]
    assert paths({"amount": 4990}, "49.90", schema={}) == []
    cents = {"properties": {"amount": {"description": "in cents"}}}
    assert paths({"amount": 2550}, "25.50", schema=cents) == []


@pytest.mark.parametrize(
    "schema",
    [{}, *({"properties": one} for one in (None, {"id": True}, {"id": {"enum": None}}))],
)
def test_a_schema_that_says_nothing_is_no_error(schema: Any) -> None:
    assert paths({"id": "A-48231"}, "Hello.", schema=schema) == ["id"]


def test_a_schema_may_refer_to_itself() -> None:
    node = {"anyOf": [{"enum": ["A-48231"]}, {"$ref": "#/$defs/Node"}]}
    schema = {"$defs": {"Node": node}, "properties": {"id": {"$ref": "#/$defs/Node"}}}
    assert paths({"id": "A-48231"}, "Hello.", schema=schema) == []
    assert paths({"id": "A-48213"}, "Hello.", schema=schema) == ["id"]


def test_settings_overrule_what_is_known_of_an_argument() -> None:
    args = {"order_id": "ORD-48213", "note": "call 555 0192"}
    assert paths(args, "Hello.", checked={"act.order_id": False}) == []
    assert paths(args, "Hello.", checked={"act.note": True}) == ["order_id", "note"]
    assert paths(args, "Hello.", checked={"act": False, "act.order_id": True}) == ["order_id"]


def test_a_missing_value_says_where_it_is_and_what_is_like_it() -> None:
    call = {"name": "refund", "args": {"items": [{"sku": "HKB-0093"}]}}
    (missing,) = missing_values(call, {}, ["two of HKB-0039"])
    assert missing == MissingValue("items[0].sku", "HKB-0093", "HKB-0039")
    assert (
        str(missing)
        == "items[0].sku: nobody gave 'HKB-0093'; the most similar value given is HKB-0039"
    )


@given(
    prefix=st.sampled_from(["ORD-", "acc_", "", "INV/2026/"]),
    digits=st.integers(10_000, 99_999_999).map(str),
    at=st.integers(0, 6),
)
def test_an_identifier_passes_as_it_stands_and_not_with_two_digits_swapped(
    prefix: str, digits: str, at: int
) -> None:
    at %= len(digits) - 1
    swapped = f"{digits[:at]}{digits[at + 1]}{digits[at]}{digits[at + 2 :]}"
    assume(swapped != digits)
    text = f"It is about {prefix}{digits}, thank you."
    assert paths({"order_id": f"{prefix}{digits}"}, text) == []
    assert paths({"order_id": f"{prefix}{swapped}"}, text) == ["order_id"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


NAMES = st.sampled_from(["amount", "size_mb", "on", "phone", "order_id", "to", "url", "user"])
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.just(10**400)


@given(
    args=st.dictionaries(st.text() | NAMES, JSON | NUMBERS, max_size=4),
    text=st.text() | NUMBERS.map(str),
)
def test_any_arguments_can_be_judged(args: dict[str, Any], text: str) -> None:
    assert isinstance(paths(args, text, question=text), list)


# -- What is given ---------------------------------------------------------------------------------


def talk(result: str, *, status: Any = "success", **args: Any) -> list[Any]:
    """Return a conversation in which a tool was called with some arguments."""
    return [
        SystemMessage("The user is ann@shop.example."),
        HumanMessage("Hello."),
        AIMessage("Perhaps ORD-7?", tool_calls=[{"name": "look", "args": args, "id": "1"}]),
        ToolMessage(result, tool_call_id="1", name="look", status=status),
    ]


def test_what_users_systems_and_tools_say_is_given_and_what_the_model_says_is_not() -> None:
    texts = given_texts(talk("found ORD-48231", q="orders"))
    assert texts == ("The user is ann@shop.example.", "Hello.", "found ORD-48231")
    assert given_texts(talk("found ORD-48231"), untrusted=["look"]) == texts[:2]
    assert given_texts(talk("found ORD-48231"), untrusted="look") == texts[:2]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ('No results for "ORD-48213".', "success"),
        ('{"query": "ORD-48213", "results": [], "total": 0}', "success"),
        ("Order ORD-48213 does not exist (404)", "error"),
        ('{"error": "no order ORD-48213", "hint": "try ORD-48231"}', "success"),
    ],
)
def test_a_result_that_only_repeats_its_call_gives_nothing(result: str, status: Any) -> None:
    given = " ".join(given_texts(talk(result, status=status, q="ORD-48213")))
    assert "ORD-48213" not in given
    assert ("ORD-48231" in given) == ("ORD-48231" in result)


def test_a_result_that_says_more_than_its_call_gives_all() -> None:
    result = '{"id": "ORD-48213", "total": 31.2}'
    assert result in given_texts(talk(result, q="ORD-48213"))


def test_what_an_earlier_call_has_named_is_given() -> None:
    for done in ("ok", '{"ok": true, "error": null, "warnings": []}'):
        assert "fix-login-2" in given_texts(talk(done, branch_name="fix-login-2"))
    for failed in ("Error: no rights", '{"error": "denied"}', '{"ok": false}'):
        assert "fix-login-2" not in given_texts(talk(failed, branch_name="fix-login-2"))


def test_escapes_of_json_are_read() -> None:
    assert "Münster/Q 7" in given_texts(talk('{"name": "M\\\\u00fcnster\\/Q 7"}'))[2]


# -- The evaluator ---------------------------------------------------------------------------------

CALL = {"name": "refund", "args": {"order_id": "ORD-48213", "amount": 31.2}}


def judged(**sample: Any) -> Any:
    return CallGrounding().invoke(Sample.model_validate(sample))


def test_the_evaluator_has_a_claim_for_each_missing_value() -> None:
    found = judged(answer=CALL, contexts=["ORD-48231 cost 31.20"])
    assert (found.passed, found.score, found.label) == (False, 0.0, "ungrounded")
    (claim,) = found.claims
    assert (claim.label, claim.path) == (ClaimLabel.UNSUPPORTED, "$.args.order_id")
    assert claim.missing_strings[0].nearest == "ORD-48231"
    right = judged(answer=CALL, contexts=["ORD-48213 cost 31.20"])
    assert (right.passed, right.score, right.claims) == (True, 1.0, ())


def test_the_evaluator_reads_schema_and_date_in_the_metadata() -> None:
    metadata = {"schema": {"properties": {"plan": {"enum": ["P-7000"]}}}, "today": "2031-05-02"}
    call = {"name": "subscribe", "args": {"plan": "P-7000", "on": "2031-05-09"}}
    assert judged(answer=call, contexts=["Next Friday."], metadata=metadata).passed
    assert not judged(answer=call, contexts=["Next Friday."]).passed


@pytest.mark.parametrize(
    "sample",
    [
        {"answer": "I refunded it."},
        {"answer": {"name": "refund"}},
        {"answer": {"args": {}}},
        {"answer": CALL, "metadata": {"today": "soon"}},
        {"answer": CALL, "metadata": {"schema": "none"}},
    ],
)
def test_what_is_no_call_is_undetermined(sample: Any) -> None:
    found = judged(**sample)
    assert found.undetermined
    assert "expected a call" in found.error
