"""Provide demur's evaluators as LlamaIndex evaluators: RefChecker, Reverse Validation, FEWL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from demur import (
    FEWL,
    CallPolicy,
    NeighborStore,
    RefChecker,
    ReverseValidation,
    Sample,
    Threshold,
)
from demur.evaluators import (
    FEWLPrompts,
    Matcher,
    RefCheckerPrompts,
    ReverseValidationPrompts,
)
from demur.similarity import SimilarityLike
from llama_index.evaluation.demur._evaluating import HallucinationEvaluator, HallucinationResult
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._nodes import as_retriever

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Model: TypeAlias = LLM | BaseChatModel | str
_FEWL_PROMPTS = FEWLPrompts()
_REFCHECKER_PROMPTS = RefCheckerPrompts()
_REVERSE_VALIDATION_PROMPTS = ReverseValidationPrompts()


class RefCheckerEvaluator(HallucinationEvaluator[RefChecker]):
    """Split an answer into claims, and label each claim against the contexts (arXiv 2405.14486).

    `score` is the share of the claims that the contexts entail, in [0, 1]. `passing` is whether the
    answer's label is Entailment. With aggregation="strict", the default, every claim must be
    entailed. With "soft", `score` must reach `threshold`. `evaluation.claims` has each claim with
    its label and its evidence. `demur.RefChecker` describes the method.

    Examples:
        >>> evaluator = RefCheckerEvaluator(llm)
        >>> evaluator.evaluate_response(query, query_engine.query(query)).passing

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model, or a name for `demur.resolve_model`. Or
            "small": demur's own judge, which needs no model. None: `Settings.llm`.
        retriever: A retriever of LlamaIndex, or a Runnable from a query to documents. It is asked
            for answers without contexts.

    The other arguments are those of `demur.RefChecker`.

    Raises:
        ValueError, TypeError, DemurError: For the same reasons as in `demur.RefChecker`.
    """

    _further = frozenset({"question"})  # `demur.RefChecker` gives the question to every prompt

    def __init__(
        self,
        llm: Model | None = None,
        *,
        checker: str | CrossEncoder = "auto",
        claims: Literal["auto", "sentences", "triplets"] = "auto",
        supported_from: float | None = None,
        aggregation: Literal["strict", "major", "soft"] = "strict",
        threshold: float | Threshold | str | Path | None = 0.8,
        retriever: BaseRetriever | Runnable[str, Any] | None = None,
        prompts: RefCheckerPrompts = _REFCHECKER_PROMPTS,
        window_tokens: int | None = None,
        max_windows: int | None = None,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes the arguments."""
        super().__init__(
            RefChecker(
                llm if llm == "small" else as_chat_model(llm),
                checker=checker,
                claims=claims,
                supported_from=supported_from,
                aggregation=aggregation,
                threshold=threshold,
                retriever=None if retriever is None else as_retriever(retriever),
                prompts=prompts,
                window_tokens=window_tokens,
                max_windows=max_windows,
                name=name,
                call_policy=call_policy,
            )
        )


class ReverseValidationEvaluator(HallucinationEvaluator[ReverseValidation]):
    """Judge an answer about one entity by whether a model can find the entity from the answer.

    `passing` is whether the model finds the entity. `score` is 1 if it does, else 0. With
    variant="em", `score` is the share of the requirements that the found entity meets, in [0, 1],
    and must reach `threshold`. Contexts are not read. `metadata={"entity": ...}` in a call names
    the entity. `demur.ReverseValidation` describes the method.

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model, or a name for `demur.resolve_model`. None:
            `Settings.llm`.
        validator: The model that looks for the entity, in the same forms. None: the same model.

    The other arguments are those of `demur.ReverseValidation`.

    Raises:
        ValueError, TypeError, DemurError: For the same reasons as in `demur.ReverseValidation`.
    """

    def __init__(
        self,
        llm: Model | None = None,
        *,
        variant: Literal["qg", "em"] = "qg",
        validator: Model | None = None,
        entity: Callable[[Sample], str | None] | None = None,
        matcher: str | Matcher = "normalized",
        threshold: float | Threshold | str | Path = 0.8,
        prompts: ReverseValidationPrompts = _REVERSE_VALIDATION_PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes the arguments."""
        super().__init__(
            ReverseValidation(
                as_chat_model(llm),
                variant=variant,
                validator=None if validator is None else as_chat_model(validator),
                entity=entity,
                matcher=matcher,
                threshold=threshold,
                prompts=prompts,
                name=name,
                call_policy=call_policy,
            )
        )


class FEWLEvaluator(HallucinationEvaluator[FEWL]):
    """Score an answer by reference models, without a gold answer (arXiv 2402.10412).

    `score` is within (-0.5, 0.5) for the total variation divergence; higher is better. Scores of
    other models or options cannot be compared. `passing` is whether `score` reaches `threshold`,
    and None without a threshold. Contexts are not read, and a query is needed. `demur.FEWL`
    describes the method.

    Args:
        llm: The reference models, which answer the query too. Give a LlamaIndex LLM, a LangChain
            chat model, or a name for `demur.resolve_model`: this model gives several answers. Or
            give a list of them: each model gives one answer. None: `Settings.llm`.
        generator: The model that writes the wrong answers and their corrections, in the same forms
            but not as a list. None: the first reference model.

    The other arguments are those of `demur.FEWL`.

    Raises:
        ValueError, TypeError, DemurError: For the same reasons as in `demur.FEWL`.
    """

    def __init__(
        self,
        llm: Model | list[Model] | tuple[Model, ...] | None = None,
        *,
        generator: Model | None = None,
        similarity: SimilarityLike = "cosine",
        n_answers: int = 5,
        n_wrong: int = 25,
        k_neighbors: int = 25,
        max_neighbor_similarity: float = 0.8,
        weighting: Literal[
            "expertise", "agreement", "uniform", "best", "ideal", "first"
        ] = "expertise",
        penalty: bool | Literal["auto"] = "auto",
        divergence: Literal["tv", "js", "kl"] = "tv",
        normalization: Literal["paper", "mean_one"] = "mean_one",
        temperature: float = 1.0,
        neighbors: NeighborStore | None = None,
        threshold: float | Threshold | str | Path | None = None,
        neighbor_choice: Literal["nearest", "random"] = "nearest",
        min_pairs: int = 3,
        premise: Literal["answer", "reference"] = "answer",
        prompts: FEWLPrompts = _FEWL_PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes the arguments."""
        models = (
            [as_chat_model(one) for one in llm]
            if isinstance(llm, (list, tuple))
            else as_chat_model(llm)
        )
        super().__init__(
            FEWL(
                models,
                generator=None if generator is None else as_chat_model(generator),
                similarity=similarity,
                n_answers=n_answers,
                n_wrong=n_wrong,
                k_neighbors=k_neighbors,
                max_neighbor_similarity=max_neighbor_similarity,
                weighting=weighting,
                penalty=penalty,
                divergence=divergence,
                normalization=normalization,
                temperature=temperature,
                neighbors=neighbors,
                threshold=threshold,
                neighbor_choice=neighbor_choice,
                min_pairs=min_pairs,
                premise=premise,
                prompts=prompts,
                name=name,
                call_policy=call_policy,
            )
        )


__all__ = [
    "FEWLEvaluator",
    "HallucinationResult",
    "RefCheckerEvaluator",
    "ReverseValidationEvaluator",
]
