"""Test the form of the demonstration's output with the real models, but not the answers."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demur import DemurError
from demur.cli.demo import play as played
from demur.cli.demo.play import play
from demur.guard import Trace
from demur.local import MiniLM

pytestmark = [pytest.mark.real, pytest.mark.documentation]


def test_the_models_answer_and_are_checked(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_chroma")
    try:
        embeddings = MiniLM()
    except DemurError as error:
        pytest.skip(f"no sentence embeddings: {error}")
    passages = played.passages
    monkeypatch.setattr(played, "passages", lambda: passages(["copy", "heapq"]))
    monkeypatch.setattr(played, "model_dir", lambda: tmp_path)
    traces = tmp_path / "traces.json"
    play(Console(file=io.StringIO()), model, traces, embeddings, ("How do I merge sorted lists?",))
    (record,) = json.loads(traces.read_text())
    trace = Trace.model_validate(record["trace"])
    first = trace.attempts[0]
    assert first.answer
    assert any(one.metadata["title"] == "heapq.merge" for one in first.contexts)
    assert first.usage.output_tokens > 0
    assert first.evaluations[0].error is None
    assert trace.outcome in ("passed", "recovered", "nothing_to_check", "abstained")
