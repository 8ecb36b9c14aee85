"""Test that styled letters become plain, and that each offset maps back to the original."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demur._text import Plain, plain

BOLD = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "".join(chr(0x1D41A + n) for n in range(26))
    + "".join(chr(0x1D400 + n) for n in range(26))
    + "".join(chr(0x1D7CE + n) for n in range(10)),
)
# fmt: off
SIGNS = ["a", " ", ".", "𝐈", "ﬁ", "Ａ", "５", "\u0301", "e\u0301", "²", "½", "①", "ﷺ", "\u1161",
         "\u1112", "ｶ", "\uff9e", "´", "\ud800", "\u00a0", "…", "！", "Ⅷ", "한", "😀"]
# fmt: on
TEXT = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(SIGNS)).map("".join)


def read(text: str) -> Plain:
    found = plain(text)
    return found or Plain(text, tuple(range(len(text))), tuple(range(1, len(text) + 1)))


@pytest.mark.parametrize(
    ("styled", "meant"),
    [
        ("It burned down in 1851.".translate(BOLD), "It burned down in 1851."),
        ("ﬁne ＡＢＣ１２", "fine ABC12"),
        ("５０％ of ３．５ ㎏", "50% of 3.5 kg"),
        ("ⓘⓣ ᴵᵗ ℍ𝕖 Ⅷ № ℃", "it It He VIII No °C"),
        ("ﷺ", "صلى الله عليه وسلم"),
        ("ｶﾞ e\u0301 \u1112\u1161\u11ab", "ガ é 한"),
        ("a\u00a0b", "a b"),
    ],
)
def test_what_is_read_alike_is_written_alike(styled: str, meant: str) -> None:
    assert read(styled).text == meant


@pytest.mark.parametrize(
    "text",
    ["10² m²", "3½ of x₂", "in 1851①", "O´Neill", "他来了！她走了？", "Well…", "ᴀʙᴄ", "Москва"],
)
def test_what_says_something_by_its_form_stays(text: str) -> None:
    assert plain(text) is None


@given(TEXT)
def test_what_is_plain_stays_as_it_is(text: str) -> None:
    once = read(text).text
    assert plain(unicodedata.normalize("NFC", once)) is None or read(once).text == once
    assert text.isascii() <= (plain(text) is None)


@settings(max_examples=100)
@given(TEXT, st.data())
def test_each_place_has_one_in_the_original(text: str, data: st.DataObject) -> None:
    found = read(text)
    assert len(found.text) == len(found.starts) == len(found.ends)
    assert [*found.starts] == sorted(found.starts)
    assert [*found.ends] == sorted(found.ends)
    start = data.draw(st.integers(0, len(found.text)))
    end = data.draw(st.integers(start, len(found.text)))
    first, last = found.original(start, end)
    assert 0 <= first <= last <= len(text)
    if start < end:
        assert found.text[start:end] in read(text[first:last]).text
    assert found.original(0, len(found.text)) == (0, len(text)) or not found.text


@pytest.mark.slow
def test_a_long_text_takes_time_by_its_length() -> None:
    # In quadratic time this would take longer than a test may.
    for text in ("𝐈𝐭 " * 200_000, "e\u0301" * 200_000, "a" + "\u0301" * 200_000):
        read(text)
