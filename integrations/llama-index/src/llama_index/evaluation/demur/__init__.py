"""Score the answers of LlamaIndex engines for hallucination, and act on the scores."""

from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._result import GuardResult, trace_of
from llama_index.evaluation.demur.agents import GuardedAgent
from llama_index.evaluation.demur.chat_engine import GuardedChatEngine
from llama_index.evaluation.demur.evaluators import (
    HallucinationEvaluator,
    HallucinationResult,
    RefCheckerEvaluator,
)
from llama_index.evaluation.demur.few_shot import FEWLExamples
from llama_index.evaluation.demur.grounded_tools import grounded_tools
from llama_index.evaluation.demur.handler import ScoreEventHandler
from llama_index.evaluation.demur.query_engine import GuardedQueryEngine

__all__ = [
    "FEWLExamples",
    "GuardResult",
    "GuardedAgent",
    "GuardedChatEngine",
    "GuardedQueryEngine",
    "HallucinationEvaluator",
    "HallucinationResult",
    "RefCheckerEvaluator",
    "ScoreEventHandler",
    "as_chat_model",
    "grounded_tools",
    "trace_of",
]
