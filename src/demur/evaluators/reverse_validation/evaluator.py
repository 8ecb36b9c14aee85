"""Reverse Validation: does what an answer says lead back to its entity? (Yang et al. 2023)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import JsonValue, PrivateAttr, field_validator

from demur._fingerprints import function_fingerprint, model_fingerprint, prompts_fingerprint
from demur._frozen import fields_of
from demur._resolve import resolve_model
from demur._undetermined import UndeterminedError, undetermined_with
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
from demur.runtime import CallPolicy, LocalCall, Steps, ask
from demur.schema import FACTUAL, NON_FACTUAL, Evaluation, Failure, Sample, Threshold

_LLM = "llm"
_PUBLISHED_EM = "published_em"
"""The one matcher that decides on percentages by itself."""
_NO_SHARE = (
    "the reply to the query names the entity, and does not say which share of the requirements it "
    'meets: expected "Percentage: ..." with one figure from 0 to 100, or "Not met: ..." with '
    "numbers of the list or none"
)
_OF_ONE_VARIANT = {"published_qg": "qg", _PUBLISHED_EM: "em"}

_PROMPTS = ReverseValidationPrompts()


class ReverseValidation(Evaluator):
    """Judge an answer about one entity by whether a model finds back from it to the entity.

    Two calls, and no references: the model turns the answer into a query without the entity's name,
    is asked that query alone, and what it names is matched with the entity. One wrong fact may lead
    elsewhere, so it is the answer as a whole that is judged. A quick check of whether to retrieve
    at all: it sees where the model does not know, and not what it has wrong or out of date (7.2).

    The evaluation's `label` is "factual" or "non-factual", and `failure` of a rejected answer is
    "mismatch", for which a guard retrieves. `score` is 1 where the entity was found and 0 where it
    was not; with "em" it is the share of requirements, in [0, 1], that the model says the found
    entity meets. `details` holds `entity`, `entity_source` ("caller", "question" or "answer"),
    `query`, `leaks` (what of the name was masked in it), `reply`, `percentage` (with "em": that
    share in percent, whichever entity was found, of the line "Percentage:", or else counted from
    "Not met:"; None where neither tells it), `unmet` (the requirements that the model names as not
    met), `matcher` and `reason`. Undetermined (`error` says why): an empty answer, one that is
    about no entity or about several, a call or a function that failed, a reply that cannot be read,
    and with "em" one that names the entity without a share. ("published_em" decides on that one
    too, and gives it no score.)

    Examples:
        >>> check = ReverseValidation("openai:gpt-4o-mini", variant="em")
        >>> check.invoke({"question": "Who was Mary Anning?", "answer": a}).label

    Args:
        model: A chat model, or a name for `resolve_model`. It constructs the query, and answers it.
        variant: "qg": question generation, the cheaper one. "em": entity matching, by a list of
            requirements (section 4.2).
        validator: Another model for stage 2, the one whose knowledge counts. None: `model`.
        entity: From the sample to the name of what its answer is about, or None where it cannot
            say; in asyncio it runs in a thread. `Sample.metadata["entity"]` goes first where it
            stands. Without either the call of stage 1 finds the entity: the one that the question
            asks about, or else the answer.
        matcher: How the reply is matched with the entity: "normalized", "exact", "published_qg",
            "published_em", "wikibio_name", "llm" (asks `model` where the names differ: a call
            more), or a function of entity and reply such as those in `matching.py`.
        threshold: With "em", the least share of the requirements that the found entity has to
            meet, in [0, 1] (the paper's text: 0.9; its recorded decisions: 0.8). A number, or a
            `Threshold` that was chosen from scores of the same `fingerprints`, or the file that one
            was saved in; "published_em" has its own and "qg" needs none: these take no `Threshold`.
        prompts: Other prompts in place of ours.
        name: What traces call it. None: the class's name.
        call_policy: Retries, time limits and concurrency; None: as fits the model.

    Raises:
        ValueError: An argument is out of its range, or names no known variant, matcher or model; or
            a `Threshold` was chosen from other scores, or would not decide here.
        TypeError: A model is no chat model, `entity` or `matcher` no function.
        DemurError: A model cannot be had.
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
        """See the class."""
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
        """Find the parts that the fields name, so that a mistake shows now and not in a call."""
        super().model_post_init(context)
        named = self.matcher if isinstance(self.matcher, str) else ""
        if _OF_ONE_VARIANT.get(named, self.variant) != self.variant:
            raise ValueError(
                f"the matcher {named!r} reads replies of variant={_OF_ONE_VARIANT[named]!r}, and "
                f"this is {self.variant!r}: 'normalized' reads both"
            )
        self._chat = resolve_model(self.model)
        self._validator = self._chat if self.validator is None else resolve_model(self.validator)
        if isinstance(self.threshold, Threshold):
            self._take(self.threshold)

    def _take(self, threshold: Threshold) -> None:
        """Refuse one that would not decide here, or decide on other scores."""
        if not self._by_share:
            raise ValueError(
                f"a Threshold does not decide with variant={self.variant!r} and "
                f"matcher={self._matcher}: expected variant='em' and another matcher than "
                f"{_PUBLISHED_EM}, where an answer passes whose score reaches it; "
                f"threshold={threshold.value!r} is only a number"
            )
        if not 0 < threshold.value <= 1:
            raise ValueError(
                f"expected a threshold in (0, 1], got {threshold.value!r}: scores are in [0, 1], "
                "and one of 0 is that of an answer that leads to another entity, which never passes"
            )
        refuse_foreign(threshold, self)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What its scores depend on, in texts: scores of other ones cannot be compared with them.

        The models, the variant, the matcher, and the prompts. A function for `matcher` or `entity`
        is told by its name, see `demur._fingerprints.function_fingerprint`.
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
        """Whether an answer passes if, and only if, its score reaches the threshold."""
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
        """The entity that the caller names, if any is named.

        Raises:
            UndeterminedError: What is named is none.
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
        """Stage 3: whether the reply names the entity."""
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
    """What a user's function decides, if it decides."""
    decision = match(entity, reply)
    if not isinstance(decision, Decision):
        raise TypeError(f"expected it to return a Decision, got {decision!r:.200}")
    return decision


def _explanation(entity: str, decision: Decision, unmet: tuple[str, ...]) -> str:
    leads = "leads back" if decision.same else "does not lead back"
    missing = f" Not met: {'; '.join(unmet)}." if unmet else ""
    return f"What the answer says {leads} to {entity}: {decision.reason}{missing}"
