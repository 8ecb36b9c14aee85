"""Test that a guarded query engine can be sent to another process."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.embeddings.langchain import LangchainEmbedding

from demur import Block, Budget, Cite, RefChecker, Regenerate, Repair, Retrieve, Strip
from fake_llm import ScriptedLLM
from guarded_app import Said, ask, labels
from llama_index.evaluation.demur._result import trace_of
from llama_index.evaluation.demur.evaluators import RefCheckerEvaluator
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine
from support.fakes import ScriptedModel
from support.rag import FACTS, QUESTION, RIGHT, WRONG, WordEmbeddings


def says_wrong_first(stage: str, messages: Sequence[BaseMessage]) -> str:
    return RIGHT if "it does not hold" in str(messages[-1].content) else WRONG


def agrees(stage: str, messages: Sequence[BaseMessage]) -> str:
    return "YES"


def engine(**options: Any) -> Any:
    """Return an engine in memory, with parts that can be pickled."""
    index = VectorStoreIndex.from_documents(
        [Document(text=fact) for fact in FACTS], embed_model=LangchainEmbedding(WordEmbeddings())
    )
    return index.as_query_engine(llm=ScriptedLLM(script=says_wrong_first), **options)


def checker() -> RefChecker:
    return RefChecker(ScriptedModel(script=labels))


def through_a_pickle(guarded: GuardedQueryEngine) -> GuardedQueryEngine:
    copied = pickle.loads(pickle.dumps(guarded))
    assert isinstance(copied, GuardedQueryEngine)
    return copied


def test_it_answers_and_is_guarded() -> None:
    copied = through_a_pickle(GuardedQueryEngine(engine(), checker()))
    response = ask("async", copied)
    assert str(response) == RIGHT
    assert [one.verdict for one in trace_of(response).attempts] == ["failed", "passed"]


def test_it_keeps_what_it_was_told() -> None:
    guarded = GuardedQueryEngine(
        engine(streaming=True),
        [RefCheckerEvaluator(ScriptedLLM(script=labels))],
        FaithfulnessEvaluator(llm=ScriptedLLM(script=agrees)),
        on_fail={
            "neutral": Retrieve(engine().retriever),
            "contradiction": Regenerate(),
            "other": Strip(ScriptedLLM(script=agrees)),
            "any": Repair(ScriptedLLM(script=agrees)),
            "end": Block(),
        },
        on_pass=Cite("list"),
        budget=Budget(attempts=2),
        streaming="buffer",
    )
    response: Any = through_a_pickle(guarded).query(QUESTION)
    assert str(response) == RIGHT
    names = [one["name"] for one in response.metadata["demur"]["evaluations"]]
    assert names == ["RefChecker", "FaithfulnessEvaluator"]
    assert response.metadata["demur"]["citations"]


class Locked(Said):
    lock: Any = None


def test_an_engine_that_cannot_be_pickled_says_so_itself() -> None:
    locked = Locked(script=str, lock=threading.Lock())
    with pytest.raises(TypeError) as own:
        pickle.dumps(locked)
    with pytest.raises(TypeError) as guarded:
        pickle.dumps(GuardedQueryEngine(locked, checker()))
    assert str(guarded.value) == str(own.value)
