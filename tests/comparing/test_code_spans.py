"""Test that foreign text in Markdown stays text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from demur._text import one_line
from demur.comparing.tables import code_span


@given(st.text(max_size=60) | st.text("` @#<\\\n", max_size=12))
def test_foreign_text_in_a_code_span_stays_as_it_is(text: str) -> None:
    (token,) = MarkdownIt("commonmark").parseInline(f"- {code_span(text)}", {})
    assert token.children
    first, *rest = token.children
    assert first.content == "- "
    assert [(one.type, one.content.strip(" ")) for one in rest] == [("code_inline", one_line(text))]
