"""Test how a text is cut where spans begin and end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.views.highlight import Segment, segments

# These characters never combine with the one before or after them.
SINGLE = st.characters(exclude_categories=("M", "Sk"), exclude_characters="\r\u200d")
SPANS = st.lists(st.tuples(st.integers(-3, 30), st.integers(-3, 30), st.integers(0, 6)))


def test_overlapping_and_nested_spans_are_cut_where_they_begin_and_end() -> None:
    assert segments("abcdef", [(0, 4, 0), (2, 6, 1), (3, 4, 2)]) == [
        Segment("ab", (0,)),
        Segment("c", (0, 1)),
        Segment("d", (0, 1, 2)),
        Segment("ef", (1,)),
    ]


@given(st.text(SINGLE, max_size=25), SPANS)
def test_pieces_are_the_text_and_each_says_what_covers_it(
    text: str, spans: list[tuple[int, int, int]]
) -> None:
    pieces = segments(text, spans)
    assert "".join(piece.text for piece in pieces) == text
    at = 0
    for piece in pieces:
        assert piece.text
        for place in range(at, at + len(piece.text)):
            covering = {m for s, e, m in spans if 0 <= s <= place < e <= len(text)}
            assert piece.members == tuple(sorted(covering))
        at += len(piece.text)
    assert all(a.members != b.members for a, b in itertools.pairwise(pieces))


@pytest.mark.parametrize(
    ("text", "span", "marked"),
    [
        ("xe\u0301y", (1, 2), "e\u0301"),
        ("xe\u0301y", (2, 4), "e\u0301y"),
        ("\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48", (0, 1), "\u0e17\u0e35\u0e48"),
        ("a\U0001f469\u200d\U0001f467b", (1, 2), "\U0001f469\u200d\U0001f467"),
        ("a\U0001f469\u200d\U0001f467b", (3, 5), "\U0001f469\u200d\U0001f467b"),
        ("\U0001f44d\U0001f3fd!", (0, 1), "\U0001f44d\U0001f3fd"),
        ("a\r\nb", (0, 2), "a\r\n"),
    ],
    ids=["accent", "from an accent", "thai", "family", "in a family", "skin", "line break"],
)
def test_no_sign_is_cut(text: str, span: tuple[int, int], marked: str) -> None:
    found = segments(text, [(*span, 1)])
    assert [piece.text for piece in found if piece.members] == [marked]
    assert "".join(piece.text for piece in found) == text


@given(st.text(st.sampled_from("ab\u0301\u200d\r\n\U0001f469\U0001f3fd"), max_size=25), SPANS)
def test_pieces_are_the_text_whatever_its_signs(
    text: str, spans: list[tuple[int, int, int]]
) -> None:
    pieces = segments(text, spans)
    assert "".join(piece.text for piece in pieces) == text
    for start, end, member in spans:
        if 0 <= start < end <= len(text):
            assert text[start:end] in "".join(p.text for p in pieces if member in p.members)
