"""Test that records become JSON, whatever they hold."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from demur.observe import Record
from support import records

_any_text = st.text(st.characters(exclude_categories=()))  # This includes lone surrogates.


def with_metadata(**metadata: Any) -> Record:
    document = Document(page_content="c", metadata=metadata)
    return records.run(records.attempt(contexts=()).model_copy(update={"contexts": (document,)}))


@given(_any_text, _any_text)
def test_any_text_is_one_line_that_reads_back(answer: str, key: str) -> None:
    attempt = records.attempt().model_copy(update={"answer": answer})
    line = records.run(attempt, metadata={key: answer}).as_json()
    assert len(line.encode().splitlines()) == 1
    read = Record.model_validate_json(line)
    clean = "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in answer)
    assert read.answer == clean
    assert list(read.metadata.values()) == [clean]


def test_what_json_does_not_have_becomes_a_string_or_null() -> None:
    record = with_metadata(
        bytes=b"a\xff",
        broken="\ud800",
        number=math.nan,
        time=datetime(2026, 1, 2, tzinfo=timezone.utc),
        places={(1, 2): {3}},
    )
    assert Record.model_validate_json(record.as_json()).contexts[0].metadata == {
        "bytes": "a\ufffd",
        "broken": "\ufffd",
        "number": None,
        "time": "2026-01-02T00:00:00+00:00",
        "places": {"(1, 2)": [3]},
    }
