"""Test rows: what a line may hold, and what is reported about others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur.scoring import Data, read_fields


def _data(path: Path, *rows: Any, fields: tuple[str, ...] = (), **options: Any) -> Data:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return Data(path, path.name, read_fields(fields), **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def test_a_row_holds_the_fields_of_a_sample(path: Path) -> None:
    row = {
        "id": "q1",
        "question": "Q?",
        "answer": "A.",
        "contexts": ["one", {"page_content": "two", "metadata": {"source": "x"}}],
        "reference": "R.",
        "preceding": "Before.",
        "metadata": {"correct": ["A."]},
        "other": 1,
    }
    (found,) = _data(path, row).rows()
    sample = found.samples[None]
    assert (found.id, found.line, found.key(None)) == ("q1", 1, "q1")
    assert (sample.question, sample.answer, sample.reference) == ("Q?", "A.", "R.")
    assert [context.page_content for context in sample.contexts] == ["one", "two"]
    assert sample.contexts[1].metadata == {"source": "x"}
    assert (sample.preceding, sample.metadata) == ("Before.", {"correct": ["A."]})


def test_answers_may_have_names_and_share_the_rest_and_fields_may_have_others(path: Path) -> None:
    named = {"id": 7, "question": "Q?", "answers": {"good": "yes", "bad": "no"}}
    (row,) = _data(path, named).rows()
    answers = [(name, one.answer, one.question) for name, one in row.samples.items()]
    assert answers == [("good", "yes", "Q?"), ("bad", "no", "Q?")]
    assert row.key("bad") == "7:bad"
    for held, name in (({"a": "1"}, "a"), ("1", "candidates")):
        (row,) = _data(path, {"candidates": held}, fields=("answers=candidates",)).rows()
        assert row.samples[name].answer == "1"
    data = _data(
        path,
        {"prompt": "Q?", "good": "yes", "bad": "no", "best": ["yes"], "question": "another"},
        fields=("question=prompt", "answers=good,bad", "metadata.correct=best"),
    )
    (row,) = data.rows()
    answers = [(name, one.answer, one.question) for name, one in row.samples.items()]
    assert answers == [("good", "yes", "Q?"), ("bad", "no", "Q?")]
    assert row.samples["good"].metadata == {"correct": ["yes"]}


TURN = [
    {"role": "user", "content": "Where is it?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "In Paris."},
]


def test_a_row_may_have_the_messages_of_an_agent(path: Path) -> None:
    last = {"role": "assistant", "content": "It is in Paris."}
    found = (
        "In Paris.",
        "The assistant called find(). It succeeded: In Paris.",
    )
    for row in (
        {"messages": [*TURN, last]},
        {"messages": TURN, "answer": last["content"]},
        {"messages": TURN, "answers": {"a": last["content"], "b": "It is in Rome."}},
    ):
        (read,) = _data(path, {"contexts": ["Known."], **row}).rows()
        sample = next(iter(read.samples.values()))
        assert (sample.question, sample.answer) == ("Where is it?", "It is in Paris.")
        assert [one.page_content for one in sample.contexts] == ["Known.", *found]
    assert read.samples["b"].answer == "It is in Rome."
    (read,) = _data(path, {"messages": TURN, "answer": {"city": "Paris"}, "question": "Q?"}).rows()
    sample = read.samples[None]
    assert (sample.question, json.loads(sample.answer)) == ("Q?", {"city": "Paris"})
    (read,) = _data(path, {"log": [*TURN, last]}, fields=("messages=log",)).rows()
    assert read.samples[None].answer == "It is in Paris."


def test_without_an_id_the_key_is_of_line_and_content(path: Path) -> None:
    one, two = _data(path, {"answer": "a"}, {"answer": "a"}).rows()
    assert one.id.startswith("1-")
    assert two.id.startswith("2-")
    assert one.id[2:] == two.id[2:]
    (other,) = _data(path, {"answer": "b"}).rows()
    assert other.id != one.id


def test_blank_lines_a_mark_and_windows_line_ends(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf{"answer": "a"}\r\n\r\n  \n{"answer": "b"}')
    rows = [*Data(path, "rows").rows()]
    assert [(row.line, row.samples[None].answer) for row in rows] == [(1, "a"), (4, "b")]


@pytest.mark.parametrize(
    ("row", "fields", "said"),
    [
        (b"{", (), "not JSON"),
        (b"\xff", (), "not UTF-8 text \\(byte 0\\)"),
        (b"[" * 100_000, (), "nested too deeply"),
        (b'{"answer": "a", "metadata": {"x": NaN}}', (), "NaN is no JSON value"),
        (b'{"id": ' + b"9" * 5000 + b"}", (), "digits"),
        ([1], (), "expected an object, got a list"),
        ({}, (), "no answer.*'answer'"),
        ({"question": "Q?"}, ("answer=reply",), "no field 'reply'"),
        ({"answer": 3}, (), "answer: .*got the number 3"),
        ({"answer": "a", "answers": {"b": "c"}}, (), "both an answer and answers"),
        ({"answers": {}}, (), "got an object that is empty"),
        ({"answers": ["a"]}, (), "answers: expected an object from names to texts, got a list"),
        ({"answers": {"bad": None}}, (), "answer 'bad': .*got null"),
        ({"good": "a"}, ("answers=good,bad",), "no field 'bad'"),
        (b'{"answers": {"\\ud800": "a", "\\udfff": "b"}}', (), "two answers .* the same name"),
        ({"answer": "a", "question": ["Q"]}, (), "question: .*got a list"),
        ({"answer": "a", "contexts": [1]}, (), "contexts: item 0"),
        ({"answer": "a", "metadata": 1, "x": 1}, ("metadata.y=x",), "metadata: expected an object"),
        ({"answer": "a", "id": True}, (), "id: expected a text or a whole number"),
        ({"answer": "a", "id": 1.5}, (), "id: .*got the number 1.5"),
        ({"messages": TURN}, (), "messages: expected messages that end with the model's answer"),
        ({"messages": "hello"}, (), "messages: expected a list, got a text"),
        ({"messages": [1], "answer": "a"}, (), "messages: .*index 0"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(
    path: Path, row: Any, fields: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        next(_data(path, row, fields=fields).rows())


def test_a_mapping_that_says_nothing_is_refused() -> None:
    for wrong in ("question", "question=", "query=prompt", "metadata.=x", "answers=a,,b"):
        with pytest.raises(ValueError, match="expected TARGET=FIELD"):
            read_fields([wrong])
    with pytest.raises(ValueError, match="id is given twice: 'a' and 'b'"):
        read_fields(["id=a", "id=b"])


def test_further_fields_are_read_where_they_are_asked_for(path: Path) -> None:
    row = {"answer": "A.", "wrong": True, "other": 1}
    (found,) = _data(path, row).rows()
    assert found.extra == {}
    with pytest.raises(ValueError, match="expected TARGET=FIELD"):
        read_fields(["label=wrong"])
    fields = read_fields(["label=wrong"], ["label", "group"])
    (found,) = Data(path, path.name, fields, extra=("label", "group")).rows()
    assert found.extra == {"label": True, "group": None}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@example(row={"id": "\ud800", "answer": "a\udfff"})
@given(
    row=st.dictionaries(
        st.sampled_from(
            ["id", "question", "answer", "answers", "contexts", "messages", "metadata"]
        ),
        _JSON,
    )
)
def test_any_row_is_read_or_refused_with_a_reason(
    row: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = Data(tmp_path_factory.getbasetemp() / "any.jsonl", "any")
    raw = json.dumps(row).encode()
    found = said = None
    try:
        found = data.row(1, raw)
    except ValueError as error:
        said = str(error)
    if found is None:
        assert said
    else:
        assert found.samples
        # No key has a lone surrogate.
        assert all(found.key(name).encode() for name in found.samples)
