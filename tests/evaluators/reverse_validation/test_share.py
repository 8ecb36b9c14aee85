"""Test that the share of met requirements is read from the reply, and never invented."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.evaluators.reverse_validation.share import share_met

LIST = "1. Red\n2. Heavy\n3. Old\n4. 1,642 metres deep"

SHARES = [
    ("75", 0.75),
    ("[75%]", 0.75),
    ("75% (3 of 4)", 0.75),
    ("3 of 4 (75%)", 0.75),
    ("2/3 (67%)", 2 / 3),
    ("100", 1.0),
    ("0", 0.0),
    # With fewer than 100 requirements, the only share of at most one percent is zero.
    ("0.75", 0.75),
    ("1.0", 1.0),
    ("2", 0.02),
]
UNREADABLE = [
    "1",
    "",
    "unknown",
    "3 requirements",
    "250%",
    "-5%",
    "9" * 500 + "%",
    "5/4",
    "less than 75%",
    "80-90%",
    "100% (3 of 4)",
    "100% of the first, 50% of the second",
]


@pytest.mark.parametrize(("written", "share"), SHARES)
def test_the_line_that_is_asked_for_is_read_however_it_is_written(
    written: str, share: float
) -> None:
    for reply in (
        f"Entity: Hoy\nPercentage: {written}\nNot met: 1, 2, 3",
        f"**Entity:** Hoy\n- **Percentage:** {written}",
        f"Entity: Hoy\n**Percentage**:\n{written}\nNot met: none",
        f"Entity: Hoy\nPercentage of the requirements met: {written}",
        f"Entity: Hoy - Percentage: {written}",
        f"Entity: 100% Wolf\nPercentage: {written} Not met: 1 (5% red)",
    ):
        assert share_met(reply, LIST) == share, reply


@pytest.mark.parametrize("written", UNREADABLE)
def test_what_is_not_one_share_is_not_read(written: str) -> None:
    assert share_met(f"Entity: Hoy\nPercentage: {written}", LIST) is None
    assert share_met(f"Entity: Hoy\nPercentage: {written}\nNot met: 2", LIST) == 0.75


@pytest.mark.parametrize(
    "reply",
    [
        "Entity: 7% Solution",
        "Entity: The Seven-Per-Cent Solution (7%)",
        "Entity: 100% Wolf\nNot met: ?",
        "Hoy meets 100% of the requirements, a perfect match.",
        "Entity: Hoy\nPercentage not met: 100%",
        "Entity: Hoy\nIt holds 90% of the birds.",
        "",
    ],
)
def test_a_percentage_elsewhere_is_not_the_figure(reply: str) -> None:
    assert share_met(reply, LIST) is None


def test_of_several_lines_the_first_is_that_of_the_first_entity() -> None:
    assert share_met("Entity: Hoy\nPercentage: 50%\nEntity: Skye\nPercentage: 100%", LIST) == 0.5
    assert share_met("Entity: Hoy\nPercentage: ?\nEntity: Skye\nPercentage: 100%", LIST) is None


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ("none", 1.0),
        ("all", 0.0),
        ("2", 0.75),
        ("2, 3", 0.5),
        ("1 and 3.", 0.5),
        ("1-3", 0.25),
        ("Heavy", 0.75),
        ("4. 1,642 metres deep", 0.75),
        ("\n1. Red\n3. Old\n", 0.5),
        ("2\n\nExplanation: 3 is met.", 0.75),
        # These replies do not say, one by one, which requirements are meant.
        ("", None),
        ("0", None),
        ("7", None),
        ("2 requirements", None),
        ("2 (weight), 3 (age)", None),
        ("the weight", None),
    ],
)
def test_without_a_figure_the_requirements_that_are_not_met_are_counted(
    said: str, share: float | None
) -> None:
    assert share_met(f"Entity: Hoy\nNot met: {said}", LIST) == share
    assert share_met(f"Entity: Hoy\nPercentage: unknown\n**Not met:** {said}", LIST) == share


def test_of_no_list_nothing_is_counted() -> None:
    assert share_met("Not met: none", "") is None


@given(
    st.integers(2, 10**5).map(lambda thousandths: thousandths / 1000),
    st.sampled_from(["%", " %", " percent", "\uff05"]),
    st.sampled_from(["", "**", "`", '"']),
    st.sampled_from([".", ","]),
    st.sampled_from(["", ".", " (rounded)", " of the requirements"]),
)
def test_every_percentage_is_read_back(
    value: float, sign: str, markup: str, point: str, tail: str
) -> None:
    written = f"{value:g}".replace(".", point)
    reply = f"Entity: Hoy\nPercentage: {markup}{written}{sign}{markup}{tail}\nNot met: none"
    assert share_met(reply, LIST) == pytest.approx(float(f"{value:g}") / 100, abs=1e-15)


@given(st.integers(1, 99), st.data(), st.sampled_from(["{}/{}", "{} of {}", "{} out of the {}"]))
def test_every_fraction_is_read_back_and_agrees_with_the_count(
    of: int, data: st.DataObject, form: str
) -> None:
    met = data.draw(st.integers(0, of))
    listed = "\n".join(f"{at}. Feature {at}" for at in range(1, of + 1))
    assert share_met(f"Percentage: {form.format(met, of)}", listed) == met / of
    unmet = ", ".join(map(str, range(met + 1, of + 1))) or "none"
    assert share_met(f"Not met: {unmet}", listed) == met / of


@given(st.text() | st.from_regex(r"[0-9./,%of \-\n()]{0,30}", fullmatch=True))
def test_any_reply_gives_a_share_or_none(said: str) -> None:
    for reply in (said, f"Percentage: {said}", f"Percentage: ?\nNot met: {said}"):
        share = share_met(reply, LIST)
        assert share is None or 0 <= share <= 1
