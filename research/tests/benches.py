"""Make benches for tests, with scripted models in place of those that a name resolves to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

import demur_judge
from demur import ClaimLabel
from demur.local import SmallJudge
from demur.recording import open_recording
from demur.schema import NLI_LABELS
from demur_research.bench import Bench, Result, Row, Table
from demur_research.datasets import read
from demur_research.datasets.rows import Answer, LabelledRow, Reading
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


_NOTHING = {"temperature": 1.0, "shift": 0.0, "missing": 0.0, "foreign": 0.0}


class Small:
    """Stand for the small judge, and keep what it reads."""

    def __init__(
        self, support: Callable[[str, str], float | str], other: ClaimLabel = ClaimLabel.NEUTRAL
    ) -> None:
        """Take a function from reference and claim to the support, or to why it cannot be read.

        `other` is the label that has the rest.
        """
        self.support, self.other = support, other
        self.asked: list[tuple[str, str]] = []

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[dict[ClaimLabel, float] | str]:
        self.asked += pairs
        return [self._said(self.support(*pair)) for pair in pairs]

    def _said(self, support: float | str) -> dict[ClaimLabel, float] | str:
        if isinstance(support, str):
            return support
        rest = dict.fromkeys(NLI_LABELS, 0.0) | {self.other: 1 - support}
        return rest | {ClaimLabel.ENTAILMENT: support}

    def stands_in(self, monkeypatch: pytest.MonkeyPatch) -> Small:
        """Stand in for the small judge until the test ends; words change nothing that it says."""
        monkeypatch.setattr(SmallJudge, "predict", lambda judge, pairs: self.predict(pairs))
        monkeypatch.setattr(demur_judge, "WORDS", {**demur_judge.WORDS, **_NOTHING})
        return self


def sure(key: str, support: object, right: bool, dataset: str | None) -> LabelledRow:
    """Return a claim that says how far it is supported; see `says_its_support`."""
    return LabelledRow(
        key,
        None,
        (Answer(f"It is {support} sure.", hallucinated=not right),),
        contexts=(f"Document of {key}.",),
        group=key,
        metadata={} if dataset is None else {"dataset": dataset},
    )


def says_its_support(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Support a claim as it says: "It is 0.97 sure." """
    words = isolated("claim", messages).split()
    return "Perhaps." if "unreadable" in words else supporting(float(words[2]))


def supporting(support: float) -> AIMessage:
    """Return the reply of a judge that supports a claim with this probability."""
    other = math.log((1 - support) / 2)
    named = {"Entailment": math.log(support), "Neutral": other, "Contradiction": other}
    return first_token(dict(sorted(named.items(), key=lambda one: -one[1])))
