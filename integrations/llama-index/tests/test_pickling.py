"""Test that a guarded query engine can be sent to another process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.embeddings.langchain import LangchainEmbedding

from demur import Block, Budget, Cite, RefChecker, Regenerate, Repair, Retrieve, Strip
from fake_llm import ScriptedLLM
from guarded_app import labels
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
