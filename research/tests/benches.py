"""Make benches for tests, with scripted models in place of those that a name resolves to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from demur.recording import open_recording
from demur_research.bench import Bench, Result, Row, Table
from demur_research.datasets import read
from demur_research.datasets.rows import LabelledRow, Reading
from demur_research.tables import TABLES
from support.fakes import ScriptedModel, isolated


@contextmanager
def benched(
    path: Path,
    model: BaseChatModel | None = None,
    sets: Mapping[str, Sequence[LabelledRow] | Path] | None = None,
    others: Mapping[str, BaseChatModel] | None = None,
    **of_bench: Any,
) -> Iterator[Bench]:
    """Open a bench over a recording; without a model, an existing recording is only replayed.

    `path` is the recording, and `model` the model of any name. `sets` has the rows of data sets, or
    the paths where they are read. `others` are models of other names. `of_bench` are further fields
    of the bench.
    """
    named = dict(others or {})

    def rows(name: str) -> Reading:
        of = (sets or {})[name]
        return read(name, of) if isinstance(of, Path) else Reading(tuple(of))

    with (
        open_recording(path, replay=model is None and path.exists()) as recording,
        pytest.MonkeyPatch.context() as at,
    ):
        at.setattr("demur_research.bench.resolve_model", lambda name: named.get(name, model))
        yield Bench(rows, recording, "scripted", **of_bench)


def made(
    table: Table | str,
    path: Path,
    model: BaseChatModel | None = None,
    sets: Mapping[str, Sequence[LabelledRow] | Path] | None = None,
    others: Mapping[str, BaseChatModel] | None = None,
    **of_bench: Any,
) -> Result:
    """Make a table, or the table of this name, on a bench that `benched` opens."""
    with benched(path, model, sets, others, **of_bench) as bench:
        return (TABLES[table] if isinstance(table, str) else table).make(bench)


def row_of(result: Result, name: str) -> Row:
    """Return the row of this name."""
    (found,) = [row for row in result.rows if row.name == name]
    return found


def values(result: Result, name: str) -> list[float | None]:
    """Return the figures of a row."""
    return [figure and figure.value for figure in row_of(result, name).figures]


def first_token(shares: Mapping[str, float]) -> AIMessage:
    """Return a reply with the log-probabilities of its first token."""
    top = [{"token": token, "logprob": logprob} for token, logprob in shares.items()]
    metadata = {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}
    return AIMessage(top[0]["token"], response_metadata=metadata)


class LocalJudge(ScriptedModel):
    """Stand for the local model with demur's adapter."""

    given: list[dict[str, Any]] = Field(default_factory=list)
    """The options of each call."""

    @property
    def _llm_type(self) -> str:
        return "demur-local"

    @property
    def judging(self) -> dict[str, Any]:
        return {"extra_body": {"lora": "ours"}}

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        self.given.append(options)
        return super()._generate(*args, **options)


def says_its_support(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Support a claim as it says: "It is 0.97 sure." """
    words = isolated("claim", messages).split()
    return "Perhaps." if "unreadable" in words else supporting(float(words[2]))


def supporting(support: float) -> AIMessage:
    """Return the reply of a judge that supports a claim with this probability."""
    other = math.log((1 - support) / 2)
    named = {"Entailment": math.log(support), "Neutral": other, "Contradiction": other}
    return first_token(dict(sorted(named.items(), key=lambda one: -one[1])))
