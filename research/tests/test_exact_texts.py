"""Test the claims of one number or identifier: each is right or wrong in the way it says."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demur_research.texts import exact
from demur_research.texts.exact import RIGHT_FORMS, WRONG_FORMS, ExactClaim, exact_claims

CLAIMS = exact_claims()
PASSAGES = {one.passage_id: one for one in CLAIMS}
KEYS = (
    *("id", "passage", "language", "kind", "what", "form", "claim", "string", "stands"),
    "supported",
)
IDENTIFIERS = {
    *("order number", "part number", "version", "host", "IP address", "commit hash", "CVE"),
    *("path", "function", "setting", "header", "e-mail address", "link", "phone number", "IBAN"),
    *("flight", "gate", "room name", "file number", "serial number", "model name"),
    "ticket number",
}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SPACED = re.compile(r"\d+(?:[., ]\d+)*")
PIECE = re.compile(r"\d+(?:[-./:]\d+)*|[^\W\d_]+")


def plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def squeezed(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def digits(text: str) -> str:
    return "".join(re.findall(r"\d", text))


def whole(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def readings(number: str) -> set[float]:
    """Return the values of a number in which a point or a comma can mean either."""
    head, *groups = re.split("[., ]", number)
    found = {float(f"{''.join((head, *groups[:-1]))}.{groups[-1]}")} if groups else {float(head)}
    if all(len(group) == 3 for group in groups):
        found.add(float("".join((head, *groups))))
    return found


def values(text: str, *forms: re.Pattern[str]) -> set[float]:
    numbers = {number for form in forms or (SPACED,) for number in form.findall(text)}
    return {value for number in numbers for value in readings(number)}


def clock(text: str) -> tuple[int, int]:
    hour, minute = (*whole(text), 0)[:2]
    return hour % 12, minute


def address(text: str) -> str:
    return text.removeprefix("https://").rstrip("/")


def of(supported: bool, kind: str) -> Iterator[ExactClaim]:
    return (one for one in CLAIMS if one.supported is supported and one.kind == kind)


def failing(claims: Iterator[ExactClaim], holds: Callable[[ExactClaim], bool]) -> list[str]:
    return [one.id for one in claims if not holds(one)]


def test_the_file_has_passages_first_and_its_keys_in_order() -> None:
    path = Path(exact.__file__).with_suffix(".jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {tuple(row) for row in rows[:44]} == {("id", "language", "text")}
    assert {tuple(row) for row in rows[44:]} == {KEYS}
    assert {row["id"] for row in rows[:44]} == set(PASSAGES)
    assert {row["id"]: row["language"] for row in rows[:44]} == {
        name: one.language for name, one in PASSAGES.items()
    }


def test_there_are_enough_claims_of_each_sort() -> None:
    languages = Counter(one.language for one in PASSAGES.values())
    assert languages == {"en": 12, "de": 8, "fr": 8, "es": 8, "zh": 4, "ja": 4}
    for kind in ("number", "identifier"):
        wrong = Counter(one.form for one in of(False, kind))
        assert set(wrong) == set(WRONG_FORMS[kind])
        assert wrong.total() >= 110
        assert max(wrong.values()) <= 1.5 * min(wrong.values())
        right = Counter(one.form for one in of(True, kind))
        assert set(right) == set(RIGHT_FORMS[kind])
        assert right.total() >= 110
        assert min(right.values()) >= 10
        assert right["as it stands"] <= 0.3 * right.total()
        for supported in (False, True):
            passages = Counter(one.passage_id for one in of(supported, kind))
            assert [name for name in PASSAGES if passages[name] < 2] == []


def test_every_sort_of_identifier_is_there_three_times_right_or_wrong() -> None:
    whats = Counter(one.what for one in CLAIMS if one.kind == "identifier")
    assert set(whats) == IDENTIFIERS
    assert min(whats.values()) >= 3


def test_passages_are_neither_short_nor_long() -> None:
    for name, one in PASSAGES.items():
        if one.language in ("zh", "ja"):
            assert 100 <= len("".join(one.passage.split())) <= 400, name
        else:
            assert 50 <= sum(bool(squeezed(word)) for word in one.passage.split()) <= 120, name


def test_no_claim_is_there_twice() -> None:
    assert [
        claim for claim, count in Counter(one.claim for one in CLAIMS).items() if count > 1
    ] == []


def test_a_wrong_identifier_is_the_right_one_with_the_edit_of_its_form() -> None:
    def holds(one: ExactClaim) -> bool:
        was, now = one.stands, one.string
        if one.form == "another of the passage":
            return now in one.passage and squeezed(now) != squeezed(was)
        if squeezed(now) in squeezed(one.passage):
            return False
        if one.form == "one character missing":
            return any(was[:at] + was[at + 1 :] == now for at in range(len(was)))
        if len(now) != len(was):
            return False
        others = [pair for pair in zip(was, now, strict=True) if len(set(pair)) > 1]
        if one.form == "one character changed":
            return len(others) == 1
        return len(others) == 2 and others[0] == others[1][::-1]

    assert failing(of(False, "identifier"), holds) == []


def test_a_wrong_number_is_another_one_and_only_stands_elsewhere_if_its_form_says_so() -> None:
    def holds(one: ExactClaim) -> bool:
        if one.form in ("swapped owners", "neighbouring cell"):
            return one.string in one.passage
        if one.form == "unit":
            return one.string not in one.passage and digits(one.string) == digits(one.stands)
        if one.form in ("date", "time"):
            return not set(PIECE.findall(plain(one.string))) <= set(
                PIECE.findall(plain(one.passage))
            )
        found, right = values(one.string), values(one.stands)
        if found & values(one.passage, NUMBER, SPACED):
            return False
        if one.form == "one digit":
            pairs = zip(digits(one.string), digits(one.stands), strict=True)
            return sum(now != was for now, was in pairs) == 1
        if one.form == "year off by one":
            return abs(int(one.string) - int(one.stands)) == 1
        tens = {round(now / was, 9) for now in found for was in right}
        return not tens.isdisjoint({0.01, 0.1, 10, 100})

    assert failing(of(False, "number"), holds) == []


def test_a_right_identifier_differs_only_as_its_form_says() -> None:
    def holds(one: ExactClaim) -> bool:
        if one.form == "case":
            return one.string.casefold() == one.stands.casefold()
        if one.form == "prefix":
            return digits(one.string) == digits(one.stands)
        if one.form == "slash or scheme":
            return address(one.string) == address(one.stands)
        return squeezed(one.string) == squeezed(one.stands)

    assert failing(of(True, "identifier"), holds) == []


def test_a_right_number_has_the_value_that_stands_in_the_passage() -> None:
    def holds(one: ExactClaim) -> bool:
        if one.form == "words":
            return bool(digits(one.string)) != bool(digits(one.stands))
        if one.form == "time form":
            return clock(one.string) == clock(one.stands)
        if one.form == "date form":
            now, was = set(whole(one.string)), set(whole(one.stands))
            return now <= was or was <= now
        if one.form == "rounded":
            pairs = [(a, b) for a in values(one.string) for b in values(one.stands)]
            if "万" in one.string:
                pairs = [(a * 10_000, b) for a, b in pairs]
            return any(0 < abs(a - b) < 0.05 * b for a, b in pairs)
        if set(one.string) & set("万千"):
            return one.form == "thousands"
        return digits(one.string) == digits(one.stands)

    assert failing(of(True, "number"), holds) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "colour"}, "unknown kind"),
        ({"form": "case"}, "unknown form"),
        ({"claim": "It weighs."}, "does not stand in the claim just once"),
        ({"claim": "It weighs 5 kg, not 5 kg."}, "does not stand in the claim just once"),
        ({"passage": "It weighs 6 kg."}, "does not stand in the passage"),
        ({"form": "as it stands", "supported": True}, "does not fit"),
    ],
)
def test_a_claim_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    texts = ("It weighs 5 kg.", "It weighs 4 kg.", "5 kg", "4 kg")
    one = ExactClaim("x-1", "x", "en", "number", "weight", "one digit", *texts, False)
    with pytest.raises(ValueError, match=message):
        replace(one, **changes)
