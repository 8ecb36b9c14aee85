"""Check whether an answer leads back to its entity (Reverse Validation, Yang et al. 2023)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import JsonValue, PrivateAttr, field_validator

from demur.evaluators.base import Evaluator
from demur.evaluators.reverse_validation.matching import (
    MATCHERS,
    Decision,
    Matcher,
    with_share,
)
from demur.evaluators.reverse_validation.parsing import parse_unmet
from demur.evaluators.reverse_validation.prompts import ReverseValidationPrompts
from demur.evaluators.reverse_validation.share import share_met
from demur.evaluators.reverse_validation.stages import (
    Query,
    Variant,
    access,
    construct,
    match_by_model,
)
from demur.evaluators.thresholds import (
    ShareThreshold,
    ThresholdOrFile,
    number,
    refuse_foreign,
)
from demur.local import resolve_model
from demur.runtime import (
    CallPolicy,
    LocalCall,
    Steps,
    UndeterminedError,
    ask,
    fields_of,
    undetermined_with,
)
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Failure, Sample, Threshold
from demur.schema.fingerprints import function_fingerprint, model_fingerprint, prompts_fingerprint

_LLM = "llm"
_PUBLISHED_EM = "published_em"
"""The only matcher that decides about percentages itself."""
_NO_SHARE = (
    "the reply to the query names the entity but does not say which share of the requirements it "
    'meets: expected "Percentage: ..." with one figure from 0 to 100, or "Not met: ..." with '
    "numbers of the list or none"
)
_OF_ONE_VARIANT = {"published_qg": "qg", _PUBLISHED_EM: "em"}

_PROMPTS = ReverseValidationPrompts()


class ReverseValidation(Evaluator):
    """Judge an answer about one entity by whether a model can find the entity from the answer.

    The check makes two calls and needs no references. The model turns the answer into a query
    without the name of the entity. It, or the `validator`, is then asked that query alone, and the
    name in the reply is matched with the entity. A single wrong fact may lead to another entity, so
    the answer is judged as a whole. Use it as a quick check of whether to retrieve at all. It
    detects what the model does not know, but not what the model has wrong or out of date (section
    7.2 of the paper).

    The evaluation's `label` is "factual" or "non-factual". A rejected answer has the `failure`
    "mismatch", for which a guard retrieves. `score` is 1 if the entity was found, and 0 if it was
    not. With variant "em", the score of a found entity is the share of the requirements that it
    meets according to the model, in [0, 1].

    `details` holds what the method did:

    - `entity`, and `entity_source`: "caller", "question" or "answer".
    - `query`, and `leaks`: the parts of the name that were masked in the query.
    - `reply`: the reply to the query.
    - `percentage`: with "em", the share of the requirements in percent, whichever entity was found.
      It is read from the line "Percentage:", or else counted from "Not met:"; None if neither has
      it.
    - `unmet`: the requirements that are not met according to the model.
    - `matcher` and `reason`.

    The evaluation is undetermined, and `error` says why, if the answer is empty, or is about no
    entity or about several. It is also undetermined if a call or a function failed, if a reply
    cannot be read, and with "em" if the reply names the entity without a share. ("published_em"
    decides in that last case too, and gives no score.)

    Examples:
        >>> check = ReverseValidation("openai:gpt-4o-mini", variant="em")
        >>> check.invoke({"question": "Who was Mary Anning?", "answer": a}).label

    Args:
        model: A chat model, or a name for `resolve_model`. It constructs the query and answers it.
        variant: "qg": question generation, which is cheaper. "em": entity matching, by a list of
            requirements (section 4.2).
        validator: Another model for stage 2, the model whose knowledge counts. None: `model`.
        entity: A function from the sample to the name of the entity that its answer is about, or to
            None if the function does not know. Asynchronous calls run it in a thread.
            `Sample.metadata["entity"]`, if present, takes precedence. Without both, the call of
            stage 1 finds the entity: the entity that the question asks about, or else the entity of
            the answer.
        matcher: How the reply is matched with the entity: "normalized", "exact", "published_qg",
            "published_em", "wikibio_name", or "llm", which asks `model` in one more call if the
            names differ. Or a function of the entity and the reply, such as those in `matching.py`.
        threshold: With "em", the least share of the requirements that the found entity must meet,
            in [0, 1] (the paper's text: 0.9; its recorded decisions: 0.8). Give a number, a
            `Threshold` that was chosen from scores with the same `fingerprints`, or the file that a
            `Threshold` was saved in. "published_em" has a threshold of its own and "qg" needs none,
            so neither takes a `Threshold`.
        prompts: Prompts that replace demur's own.
        name: The name in traces. None: the name of the class.
        call_policy: Retries, time limits and concurrency of the calls. None: the defaults for each
            model.

    Raises:
        ValueError: An argument is out of its range, or is not a known variant, matcher or model; or
            a `Threshold` was chosen from other scores, or has no effect with these arguments.
        TypeError: A model is not a chat model, or `entity` or `matcher` is not a function.
        DemurError: A model is not available.
    """

    model: Any
    variant: Variant = "qg"
    validator: Any = None
    entity: Callable[[Sample], str | None] | None = None
    matcher: str | Matcher = "normalized"
    threshold: ShareThreshold = 0.8
    prompts: ReverseValidationPrompts = _PROMPTS

    _chat: BaseChatModel = PrivateAttr()
    _validator: BaseChatModel = PrivateAttr()

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        variant: Variant = "qg",
        validator: str | BaseChatModel | None = None,
        entity: Callable[[Sample], str | None] | None = None,
        matcher: str | Matcher = "normalized",
        threshold: ThresholdOrFile = 0.8,
        prompts: ReverseValidationPrompts = _PROMPTS,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make an evaluator; the class describes the arguments."""
        super().__init__(**fields_of(locals()))

    @field_validator("entity", "matcher")
    @classmethod
    def _plain(cls, value: object) -> object:
        if inspect.iscoroutinefunction(value):
            raise ValueError("expected a plain function, got an asynchronous one")
        return value

    @field_validator("matcher")
    @classmethod
    def _known(cls, value: object) -> object:
        if isinstance(value, str) and value not in (*MATCHERS, _LLM):
            raise ValueError(
                f"unknown matcher {value!r}: expected one of {', '.join(MATCHERS)}, {_LLM}, or a "
                "function from entity and reply to a Decision"
            )
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Resolve the models, and check the matcher and the threshold before the first call."""
        super().model_post_init(context)
        named = self.matcher if isinstance(self.matcher, str) else ""
        if _OF_ONE_VARIANT.get(named, self.variant) != self.variant:
            raise ValueError(
                f"the matcher {named!r} reads replies of variant={_OF_ONE_VARIANT[named]!r}, but "
                f"the variant is {self.variant!r}: give matcher='normalized', which reads both"
            )
        self._chat = resolve_model(self.model)
        self._validator = self._chat if self.validator is None else resolve_model(self.validator)
        if isinstance(self.threshold, Threshold):
            self._take(self.threshold)

    def _take(self, threshold: Threshold) -> None:
        """Raise ValueError for a threshold without effect here, or from other scores."""
        if not self._by_share:
            raise ValueError(
                f"a Threshold does not decide with variant={self.variant!r} and "
                f"matcher={self._matcher}: give variant='em' and another matcher than "
                f"{_PUBLISHED_EM}, with which an answer passes if its score reaches the threshold; "
                f"or give the number, threshold={threshold.value!r}"
            )
        if not 0 < threshold.value <= 1:
            raise ValueError(
                f"expected a threshold in (0, 1], got {threshold.value!r}: scores are in [0, 1], "
                "and an answer that leads to another entity has the score 0 and never passes"
            )
        refuse_foreign(threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return texts that say what the scores depend on: scores with other texts do not compare.

        They identify the models, the variant, the matcher and the prompts. A function for `matcher`
        or `entity` is identified by its name (`demur.schema.fingerprints.function_fingerprint`).
        """
        finder = {} if self.entity is None else {"entity": function_fingerprint(self.entity)}
        return {
            "evaluator": type(self).__qualname__,
            "model": model_fingerprint(self._chat),
            "validator": model_fingerprint(self._validator),
            "variant": self.variant,
            "matcher": self._matcher,
            **finder,
            "prompts": prompts_fingerprint(self.prompts),
        }

    @property
    def _by_share(self) -> bool:
        """Return whether an answer passes exactly if its score reaches the threshold."""
        return self.variant == "em" and self.matcher != _PUBLISHED_EM

    @property
    def _matcher(self) -> str:
        if isinstance(self.matcher, str):
            return self.matcher
        return function_fingerprint(self.matcher)

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        if not sample.answer.strip():
            raise UndeterminedError("the answer is empty: there is nothing to validate")
        entity = yield from self._named(sample)
        query = yield from construct(self._chat, sample, entity, self.variant, self.prompts)
        details: dict[str, JsonValue] = {
            "entity": query.entity,
            "entity_source": query.source,
            "query": query.text,
            "leaks": list(query.leaks),
        }
        with undetermined_with(details):
            reply = yield from access(self._validator, query.text, self.variant, self.prompts)
            details["reply"] = reply
            matched = yield from self._match(query.entity, reply)
        return self._conclude(query, reply, matched, details)

    def _named(self, sample: Sample) -> Steps[str | None]:
        """Return the entity that the caller names, or None.

        Raises:
            UndeterminedError: The function failed, or the caller's value is not a name.
        """
        name = sample.metadata.get("entity")
        where = "metadata['entity']"
        if name is None and self.entity is not None:
            where = "the function `entity`"
            name = yield from ask(
                LocalCall(partial(self.entity, sample), "entity"), f"{where} failed"
            )
        if name is None:
            return None
        if not isinstance(name, str) or not any(map(str.isalnum, name)):
            raise UndeterminedError(f"{where}: expected the name of an entity, got {name!r:.200}")
        return name.strip()

    def _match(self, entity: str, reply: str) -> Steps[Decision]:
        """Return whether the reply names the entity (stage 3)."""
        if self.matcher == _LLM:
            return (yield from match_by_model(self._chat, entity, reply, self.prompts))
        if isinstance(self.matcher, str):
            return MATCHERS[self.matcher](entity, reply)
        matching = partial(_decision, self.matcher, entity, reply)
        return (yield from ask(LocalCall(matching, "matching"), "the function `matcher` failed"))

    def _conclude(
        self, query: Query, reply: str, by_name: Decision, details: dict[str, JsonValue]
    ) -> Evaluation:
        em = self.variant == "em"
        met = share_met(reply, query.text) if em else None
        unmet = parse_unmet(reply, query.text) if em else ()
        details |= {
            "percentage": None if met is None else round(100 * met, 9),
            "unmet": list(unmet),
            "matcher": self.matcher if isinstance(self.matcher, str) else "a function",
        }
        decision: Decision | None = by_name
        if self._by_share:
            decision = with_share(by_name, met, number(self.threshold))
        if decision is None:
            raise UndeterminedError(_NO_SHARE, details=details)
        return Evaluation(
            name=self.get_name(),
            score=met if em and by_name.same else float(by_name.same),
            label=FACTUAL if decision.same else NON_FACTUAL,
            passed=decision.same,
            failure=None if decision.same else Failure.MISMATCH,
            explanation=_explanation(query.entity, decision, unmet),
            details={**details, "reason": decision.reason},
        )


def _decision(match: Matcher, entity: str, reply: str) -> Decision:
    """Return the decision of a user's function, or raise TypeError if it is not a `Decision`."""
    decision = match(entity, reply)
    if not isinstance(decision, Decision):
        raise TypeError(f"expected it to return a Decision, got {decision!r:.200}")
    return decision


def _explanation(entity: str, decision: Decision, unmet: tuple[str, ...]) -> str:
    leads = "leads back" if decision.same else "does not lead back"
    missing = f" Not met: {'; '.join(unmet)}." if unmet else ""
    return f"What the answer says {leads} to {entity}: {decision.reason}{missing}"
