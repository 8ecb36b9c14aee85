"""Test values in a page's script elements: they come back unchanged, and cannot leave them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demur.views.report.embedding import as_code, as_data, digest, packed
from support.records import HOSTILE

TEXTS = st.one_of(
    st.text(),
    st.sampled_from(["</script>", "<!--<script>", "\u2028\u2029", "\x00", "&lt;", HOSTILE, "]]>"]),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
) | st.lists(TEXTS)


@given(VALUES)
def test_data_comes_back_and_cannot_end_its_element(value: object) -> None:
    text = as_data(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029\x00")


def test_data_has_no_lone_surrogate_and_no_nan() -> None:
    assert json.loads(as_data(["a\ud800b"]).encode()) == ["a\ufffdb"]
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON compliant"):
            as_data([number])


@given(st.lists(TEXTS))
def test_packed_texts_come_back(values: list[str]) -> None:
    text = packed(values)
    assert json.loads(gzip.decompress(base64.b64decode(text))) == values
    assert packed(values) == text  # The same log gives the same page.
    assert b"<" not in text


@pytest.mark.parametrize("part", ["</script", "</SCRIPT>", "<!--", "<script", "\r\n", "\0"])
def test_a_script_that_would_be_read_otherwise_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="cannot be put into a page"):
        as_code(f"say('{part}')")
    assert as_code("a < b") == "a < b"


def test_the_digest_is_of_the_bytes_that_stand_in_the_page() -> None:
    script = "say('ä')"
    found = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert digest(script) == f"'sha256-{found}'"
