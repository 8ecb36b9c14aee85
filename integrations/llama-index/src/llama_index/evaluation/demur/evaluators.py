"""demur's evaluators as LlamaIndex's: FEWL, Reverse Validation, RefChecker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from llama_index.core.llms import LLM
from typing_extensions import Unpack

from demur import FEWL, RefChecker, ReverseValidation
from llama_index.evaluation.demur._evaluating import HallucinationEvaluator, HallucinationResult
from llama_index.evaluation.demur._llm import as_chat_model
from llama_index.evaluation.demur._nodes import as_retriever
from llama_index.evaluation.demur._options import (
    FEWLOptions,
    RefCheckerOptions,
    ReverseValidationOptions,
)

Model: TypeAlias = LLM | BaseChatModel | str


class RefCheckerEvaluator(HallucinationEvaluator):
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
        options: As `demur.RefChecker` has them. `retriever`, for answers without contexts, may be
            one of LlamaIndex's.

    Raises:
        ValueError, TypeError, DemurError: As `demur.RefChecker` does.
    """

    _evaluator: RefChecker
    _further = frozenset({"question"})  # which its core gives to all of them

    def __init__(
        self,
        llm: Model | None = None,
        **options: Unpack[RefCheckerOptions],
    ) -> None:
        """See the class."""
        given: dict[str, Any] = {**options}
        if given.get("retriever") is not None:
            given["retriever"] = as_retriever(given["retriever"])
        super().__init__(RefChecker(as_chat_model(llm), **given))

    @property
    def evaluator(self) -> RefChecker:
        """See the base."""
        return self._evaluator


class ReverseValidationEvaluator(HallucinationEvaluator):
    """Judge an answer about one entity by whether a model finds back from it to the entity.

    `passing` is whether it does. `score` is 1 where the entity was found and 0 where it was not;
    with variant="em" it is the share of requirements, in [0, 1], that the found entity meets, which
    has to reach `threshold`. No contexts are read. `metadata={"entity": ...}` of a call names the
    entity. See `demur.ReverseValidation`.

    Args:
        llm: A LlamaIndex LLM, a LangChain chat model or a name for `demur.resolve_model`. None:
            `Settings.llm`.
        options: As `demur.ReverseValidation` has them. `validator` may be any of the above.

    Raises:
        ValueError, TypeError, DemurError: As `demur.ReverseValidation` does.
    """

    _evaluator: ReverseValidation

    def __init__(
        self,
        llm: Model | None = None,
        **options: Unpack[ReverseValidationOptions],
    ) -> None:
        """See the class."""
        given = _with_model(options, "validator")
        super().__init__(ReverseValidation(as_chat_model(llm), **given))

    @property
    def evaluator(self) -> ReverseValidation:
        """See the base."""
        return self._evaluator


class FEWLEvaluator(HallucinationEvaluator):
    """Score an answer by reference models, without a gold answer (arXiv 2402.10412).

    `score` is within (-0.5, 0.5) for total variation; higher is better, and scores of other models
    or options are not comparable. `passing` is whether it reaches `threshold`, and None without
    one. No contexts are read, and a query is needed. See `demur.FEWL`.

    Args:
        llm: Who answers the query too: a LlamaIndex LLM, a LangChain chat model or a name for
            `demur.resolve_model`, which gives several answers; or a list of them, which give one
            each. None: `Settings.llm`.
        options: As `demur.FEWL` has them. `generator` may be any of the above but a list.

    Raises:
        ValueError, TypeError, DemurError: As `demur.FEWL` does.
    """

    _evaluator: FEWL

    def __init__(
        self,
        llm: Model | list[Model] | tuple[Model, ...] | None = None,
        **options: Unpack[FEWLOptions],
    ) -> None:
        """See the class."""
        given = _with_model(options, "generator")
        if isinstance(llm, (list, tuple)):
            super().__init__(FEWL([as_chat_model(one) for one in llm], **given))
        else:
            super().__init__(FEWL(as_chat_model(llm), **given))

    @property
    def evaluator(self) -> FEWL:
        """See the base."""
        return self._evaluator


def _with_model(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Options, of which one may be an LLM."""
    if options.get(name) is None:
        return {**options}
    return {**options, name: as_chat_model(options[name])}


__all__ = [
    "FEWLEvaluator",
    "HallucinationResult",
    "RefCheckerEvaluator",
    "ReverseValidationEvaluator",
]
