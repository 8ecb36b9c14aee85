"""What the evaluators take beside their LLM. Defaults, ranges and meanings are demur's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from demur import CallPolicy, Sample, Threshold
from demur.evaluators import (
    FEWLPrompts,
    Matcher,
    NeighborStore,
    RefCheckerPrompts,
    ReverseValidationPrompts,
)

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class _Options(TypedDict, total=False):
    name: str | None
    call_policy: CallPolicy | None


class RefCheckerOptions(_Options, total=False):
    """Of `demur.RefChecker`."""

    checker: str | CrossEncoder
    threshold: float | Threshold | None
    claims: Literal["auto", "triplets", "statements", "sentences"]
    aggregation: Literal["strict", "major", "soft"]
    retriever: BaseRetriever | Runnable[str, Any] | None
    prompts: RefCheckerPrompts
    window_tokens: int | None


class ReverseValidationOptions(_Options, total=False):
    """Of `demur.ReverseValidation`."""

    threshold: float | Threshold
    variant: Literal["qg", "em"]
    validator: LLM | BaseChatModel | str | None
    entity: Callable[[Sample], str | None] | None
    matcher: str | Matcher
    prompts: ReverseValidationPrompts


class FEWLOptions(_Options, total=False):
    """Of `demur.FEWL`."""

    threshold: float | Threshold | None
    generator: LLM | BaseChatModel | str | None
    similarity: Any
    n_answers: int
    n_wrong: int
    k_neighbors: int
    max_neighbor_similarity: float
    weighting: Literal["expertise", "uniform", "best", "ideal", "first"]
    penalty: bool | Literal["auto"]
    divergence: Literal["tv", "js", "kl"]
    normalization: Literal["paper", "mean_one"]
    temperature: float
    neighbors: NeighborStore | None
    expertise: Literal["similarity", "agreement"]
    neighbor_choice: Literal["nearest", "random"]
    min_pairs: int
    premise: Literal["answer", "reference"]
    prompts: FEWLPrompts
