"""The tables of Reverse Validation, on a small set and on the publishers' records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage

from demur_research import bench as seam
from demur_research.bench import Bench, Result
from demur_research.datasets import read
from demur_research.recording import open_recording
from demur_research.tables import TABLES
from publishers import say
from support.fakes import ScriptedModel

USED = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
# The figures of the part that the workplace has, and of the whole benchmark as published.
PART, WHOLE = 187, 300


class Lengths(Embeddings):
    """Vectors that take no model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "MiniLM", Lengths)


def counted(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(say(stage, messages), usage_metadata=USED)


def made(
    table: str,
    data: Mapping[str, Path],
    recording: Path,
    script: Callable[[str, Sequence[BaseMessage]], Any] | None = None,
    limit: int | None = None,
    **options: str,
) -> Result:
    """What a table comes to; without a script, by a recording that is only read."""
    with open_recording(recording, replay=recording.exists() and script is None) as opened:
        if script is not None:
            opened.model("scripted", lambda name: ScriptedModel(script=script))
        bench = Bench(
            lambda name: read(name, data[name]), opened, "scripted", limit, options=options
        )
        object.__setattr__(bench, "model", _model(opened, script))
        return TABLES[table].make(bench)
