"""Test saved traces that are read as a log."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from demur import Evaluation
from demur.guard import Trace
from demur.observe import Record
from demur.observe.log import LogError, open_log, records
from support.records import found, guarded, refuted

NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


def _trace(*evaluations: Evaluation, minute: int = 0) -> Trace:
    run = guarded(*evaluations)
    return Trace(
        outcome="recovered",
        reason="answer 2 passed",
        limit="attempts",
        attempts=run.attempts,
        usage=run.usage,
        time=NOON.replace(minute=minute),
        seconds=2.5,
    )


TRACES = [_trace(minute=1), _trace(refuted(), refuted(), found(), minute=2)]
JSON = [trace.model_dump_json() for trace in TRACES]


@pytest.mark.parametrize(
    "text",
    [
        f"[{', '.join(JSON)}]",
        json.dumps([json.loads(one) for one in JSON], indent=2),
        "\n".join(JSON),
        "\ufeff".join(["", *JSON[:1]]) + f"\n\n{JSON[1]}\n",
        "".join(f'{{"output": "text", "trace": {one}}}\n' for one in JSON),
        json.dumps([{"output": "text", "trace": json.loads(one)} for one in JSON], indent=2),
    ],
    ids=["list", "indented", "lines", "marked", "lines with outputs", "as the demo writes"],
)
def test_every_form_is_a_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "traces.json"
    path.write_text(text, encoding="utf-8")
    with open_log(path) as log:
        assert not log.damaged
        read = [*records(log)]
    for number, (record, trace) in enumerate(zip(read, TRACES, strict=True), start=1):
        assert record.id == record.root == f"trace-{number}"
        fields = {*Trace.model_fields} - {"citations"}  # The citations follow from the attempts.
        kept = {name: getattr(record, name) for name in fields}
        assert kept == {name: getattr(trace, name) for name in fields}


def test_a_lone_trace_and_none(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    for indent in (None, 2):
        path.write_text(TRACES[0].model_dump_json(indent=indent), encoding="utf-8")
        with open_log(path) as log:
            assert [record.attempts for record in records(log)] == [TRACES[0].attempts]
    path.write_text("[]\n", encoding="utf-8")
    with open_log(path) as log:
        assert [*records(log)] == []


def _of_which(text: str, tmp_path: Path) -> tuple[list[str], list[str]]:
    """Return the ids of the records that are read, and a description of what is left out."""
    path = tmp_path / "traces.json"
    path.write_text(text, encoding="utf-8")
    with open_log(path) as log:
        ids = [one.id for one in records(log) if isinstance(one, Record)]
        return ids, [f"{one.place}: {one.why}" for one in log.damaged]


def test_a_damaged_trace_is_left_out_and_told(tmp_path: Path) -> None:
    value = json.loads(JSON[0])
    del value["time"]
    whole = json.loads(JSON[1])
    for text in (
        json.dumps([whole, value, 3, whole]),
        "\n".join([JSON[1], json.dumps(value), "3", JSON[1]]),
    ):
        ids, damaged = _of_which(text, tmp_path)
        assert ids == ["trace-1", "trace-4"]
        assert damaged == ["trace 2: time: Field required", "trace 3: it is 3"]
    ids, (damaged_line,) = _of_which(f"{JSON[0]}\n{JSON[1][:-9]}\n{JSON[0]}\n", tmp_path)
    assert ids == ["trace-1", "trace-3"]
    assert damaged_line.startswith("line 2: JSONDecodeError")
    with pytest.raises(LogError, match=r"is not a log: trace 1: time: Field required"):
        _of_which(json.dumps([value]), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        *('[{"a": 1}]\n', '{"trace": 3}\n', "[1, 2]\n", "[" * 9999 + "\n"),
        "1\n" + "[" * 99_999 + "]" * 99_999 + "\n",
    ],
    ids=["list", "no trace", "numbers", "open", "deep"],
)
def test_other_json_is_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LogError, match="is not a log: line 1"):
        open_log(path)
