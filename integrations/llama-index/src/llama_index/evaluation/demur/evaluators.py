"""demur's evaluators as LlamaIndex's: FEWL, Reverse Validation, RefChecker."""

from __future__ import annotations

from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM

from demur import FEWL, RefChecker, ReverseValidation
from llama_index.evaluation.demur._evaluating import HallucinationEvaluator, HallucinationResult
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._nodes import as_retriever

Model: TypeAlias = LLM | BaseChatModel | str


class RefCheckerEvaluator(HallucinationEvaluator[RefChecker]):
    """Split an answer into claims and label each against its contexts (arXiv 2405.14486).

    `score` is the entailed share of the claims, in [0, 1]. `passing` is whether the aggregation
    gives Entailment: with "strict", the default, whether every claim is entailed; with "soft",
    whether the score reaches `threshold`. `evaluation.claims` has each claim, its label and its
    evidence. See `demur.RefChecker`.

    Example:
        >>> evaluator = RefCheckerEvaluator(llm)
        >>> evaluator.evaluate_response(query, query_engine.query(query)).passing

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model or a name for `demur.resolve_model`. None:
            `Settings.llm`.
        retriever: For answers without contexts; it may be one of LlamaIndex's.
        **options: The other options of `demur.RefChecker`: `checker`, `claims`, `aggregation`,
            `threshold`, `prompts`, `window_tokens`, `max_windows`, `name`, `call_policy`.

    Raises:
        ValueError, TypeError, DemurError: As `demur.RefChecker` does.
    """

    _further = frozenset({"question"})  # which its core gives to all of them

    def __init__(
        self,
        llm: Model | None = None,
        *,
        retriever: BaseRetriever | Runnable[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """See the class."""
        searches = None if retriever is None else as_retriever(retriever)
        super().__init__(RefChecker(as_chat_model(llm), retriever=searches, **options))


class ReverseValidationEvaluator(HallucinationEvaluator[ReverseValidation]):
    """Judge an answer about one entity by whether a model finds back from it to the entity.

    `passing` is whether it does. `score` is 1 where the entity was found and 0 where it was not;
    with variant="em" it is the share of requirements, in [0, 1], that the found entity meets, which
    has to reach `threshold`. No contexts are read. `metadata={"entity": ...}` of a call names the
    entity. See `demur.ReverseValidation`.

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model or a name for `demur.resolve_model`. None:
            `Settings.llm`.
        validator: As `llm`; None: the same.
        **options: The other options of `demur.ReverseValidation`: `variant`, `entity`, `matcher`,
            `threshold`, `prompts`, `name`, `call_policy`.

    Raises:
        ValueError, TypeError, DemurError: As `demur.ReverseValidation` does.
    """

    def __init__(
        self, llm: Model | None = None, *, validator: Model | None = None, **options: Any
    ) -> None:
        """See the class."""
        validates = None if validator is None else as_chat_model(validator)
        super().__init__(ReverseValidation(as_chat_model(llm), validator=validates, **options))


class FEWLEvaluator(HallucinationEvaluator[FEWL]):
    """Score an answer by reference models, without a gold answer (arXiv 2402.10412).

    `score` is within (-0.5, 0.5) for total variation; higher is better, and scores of other models
    or options are not comparable. `passing` is whether it reaches `threshold`, and None without
    one. No contexts are read, and a query is needed. See `demur.FEWL`.

    Args:
        llm: Who answers the query too: a LlamaIndex LLM, a LangChain chat model or a name for
            `demur.resolve_model`, which gives several answers; or a list of them, which give one
            each. None: `Settings.llm`.
        generator: As `llm`, but not a list; None: the first of them.
        **options: The other options of `demur.FEWL`: `similarity`, `n_answers`, `n_wrong`,
            `neighbors`, `penalty`, `threshold`, `prompts`, `name`, `call_policy` and more.

    Raises:
        ValueError, TypeError, DemurError: As `demur.FEWL` does.
    """

    def __init__(
        self,
        llm: Model | list[Model] | tuple[Model, ...] | None = None,
        *,
        generator: Model | None = None,
        **options: Any,
    ) -> None:
        """See the class."""
        models = (
            [as_chat_model(one) for one in llm]
            if isinstance(llm, (list, tuple))
            else as_chat_model(llm)
        )
        writes = None if generator is None else as_chat_model(generator)
        super().__init__(FEWL(models, generator=writes, **options))


__all__ = [
    "FEWLEvaluator",
    "HallucinationResult",
    "RefCheckerEvaluator",
    "ReverseValidationEvaluator",
]
