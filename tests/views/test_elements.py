"""Test what becomes HTML, and what stays text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from demur.views.elements import element, joined, prefix_of
from demur.views.folds import folded


@pytest.mark.parametrize("text", ["<b>&\"'", Markup("<b>&\"'")])
def test_texts_are_escaped_even_those_that_say_they_are_markup(text: str) -> None:
    made = element("p", text, element("i", text), title=text)
    safe = "&lt;b&gt;&amp;&#34;&#39;"
    assert made == f'<p title="{safe}">{safe}<i>{safe}</i></p>'
    assert joined(text) == safe


def test_control_characters_are_made_visible() -> None:
    assert element("p", "a\x00b\x1b\u202ec\ud800\r\nd") == "<p>a␀b␛\ufffdc\ufffd\nd</p>"


@given(st.lists(st.text(max_size=4) | st.none()), st.lists(st.text(max_size=4) | st.none()))
def test_other_content_has_another_prefix(one: list[str | None], other: list[str | None]) -> None:
    assert (prefix_of(one) == prefix_of(other)) == (one == other)


def test_a_prefix_is_the_same_in_each_run() -> None:
    assert prefix_of(["a", None, "\ud800"]) == "demur-1d070557846c"


PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "P", "S", "Zs")), max_size=40)


@given(PLAIN, st.integers(0, 80), st.booleans(), st.booleans())
def test_a_fold_holds_what_is_not_shown_and_nothing_is_lost(
    begin: str, words: int, head: bool, tail: bool
) -> None:
    text = begin + " some more words" * words
    parts = folded(text, head=head, tail=tail)
    whole = "".join(parts if len(parts) == 1 else [parts[0], _inside(parts[1]), parts[2]])
    assert whole == text
    assert (len(parts) == 1) == (len(text) <= 600)
    if len(parts) > 1:
        assert (bool(parts[0]), bool(parts[2])) == (head, tail)
        assert len(parts[0]) + len(parts[2]) < 800


def _inside(made: str) -> str:
    return Markup(str(made).partition("</summary>")[2].removesuffix("</details>")).unescape()
