"""Run the three stages (section 4.1): construct a query, access the model's knowledge, match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage

from demur.evaluators.reverse_validation.leaks import mask, stands_in
from demur.evaluators.reverse_validation.matching import (
    Decision,
    gives_none,
    normalized,
    same_entity,
)
from demur.evaluators.reverse_validation.parsing import (
    NONE,
    Built,
    parse_question,
    parse_requirements,
)
from demur.evaluators.reverse_validation.prompts import ReverseValidationPrompts, again
from demur.runtime import ChatCall, Reply, Steps, UndeterminedError, ask, bounded
from demur.schema import Sample

Variant = Literal["qg", "em"]
Source = Literal["caller", "question", "answer"]

_TRIES = 2
# The maximum numbers of tokens, so that a small model that never ends does not take a minute.
_QUERY_TOKENS: dict[str, int] = {"qg": 200, "em": 700}
_REPLY_TOKENS: dict[str, int] = {"qg": 40, "em": 120}
_VERDICT_TOKENS = 20


@dataclass(frozen=True)
class Query:
    """Hold the query that stage 1 made of an answer."""

    entity: str
    source: Source
    """Where the entity comes from: the caller, or the text in which the model found it."""
    text: str
    """A question, or a list of requirements, without the entity's name."""
    leaks: tuple[str, ...]
    """The parts of the name that were masked in the query."""


def construct(
    model: BaseChatModel,
    sample: Sample,
    entity: str | None,
    variant: Variant,
    prompts: ReverseValidationPrompts,
) -> Steps[Query]:
    """Construct a query from everything that the answer says of its entity, in one call (stage 1).

    If no entity is given, the same call finds it. A query is requested once more if it cannot be
    read, or if it says nothing after the entity's name is masked.

    Raises:
        UndeterminedError: There is no query.
    """
    if entity is not None:
        prompt = prompts.question if variant == "qg" else prompts.requirements
        messages = prompt.messages(passage=sample.answer, entity=entity)
    else:
        by_variant = {"qg": prompts.entity_and_question, "em": prompts.entity_and_requirements}
        prompt = by_variant[variant]
        messages = prompt.messages(question=sample.question, passage=sample.answer)
    options = bounded(model, _QUERY_TOKENS[variant])
    why = ""
    for _ in range(_TRIES):
        call = ChatCall(model, messages, "construction", options)
        reply = yield from ask(call, "the query could not be constructed")
        read = _read(reply, variant)
        query = _query(read, sample, entity)
        if isinstance(query, Query):
            return query
        why, ask_again = query
        if ask_again is None:
            break
        messages = [*messages, AIMessage(reply.text or "(nothing)"), HumanMessage(again(ask_again))]
    raise UndeterminedError(why)


def _read(reply: Reply, variant: Variant) -> Built:
    if variant == "qg":
        return parse_question(reply.text)
    return parse_requirements(reply.text, reply.truncated)


def _query(read: Built, sample: Sample, entity: str | None) -> Query | tuple[str, str | None]:
    """Return the query, or why there is no query and what to ask the model for once more.

    The second part is None if another call would not help.
    """
    source: Source = "caller"
    if entity is None:
        if read.entities != "one":
            what = (
                "is about nothing that has a name"
                if read.entities == NONE
                else "is about several entities, each for itself"
            )
            return f"the answer {what}: Reverse Validation needs one entity", None
        if read.entity is None:
            return "the reply of stage 1 names no entity", 'There is no line "Entity: ...".'
        entity = read.entity
        if stands_in(entity, sample.question or ""):
            source = "question"
        elif stands_in(entity, sample.answer):
            source = "answer"
        else:
            return (
                f"the entity that the model found, {entity!r}, is neither in the question nor "
                "in the answer",
                "This entity stands neither in the question nor in the passage.",
            )
    if not read.query:
        return "the reply of stage 1 holds no query that can be read", "There is no query."
    masked = mask(read.query, entity, sample.answer)
    if not masked.says_something:
        return (
            f"without the entity's name the query says nothing: {masked.text!r}",
            "It says nothing of what the passage says.",
        )
    return Query(entity, source, masked.text, masked.leaks)


def access(
    model: BaseChatModel, query: str, variant: Variant, prompts: ReverseValidationPrompts
) -> Steps[str]:
    """Return the reply of a model that sees nothing but the query (stage 2).

    Raises:
        UndeterminedError: The call failed, or the reply is empty.
    """
    if variant == "qg":
        messages = prompts.answer.messages(question=query)
    else:
        messages = prompts.find.messages(requirements=query)
    call = ChatCall(model, messages, "access", bounded(model, _REPLY_TOKENS[variant]))
    reply = (yield from ask(call, "the query was not answered")).text.strip()
    if not reply:
        raise UndeterminedError("the reply to the query is empty")
    return reply


def match_by_model(
    model: BaseChatModel, entity: str, reply: str, prompts: ReverseValidationPrompts
) -> Steps[Decision]:
    """Ask a model whether two names that differ are the same entity (stage 3, section 7.1).

    Raises:
        UndeterminedError: There is no decision.
    """
    by_name = normalized(entity, reply)
    if by_name.same or gives_none(reply):
        return by_name
    messages = prompts.same.messages(entity=entity, reply=reply)
    call = ChatCall(model, messages, "matching", bounded(model, _VERDICT_TOKENS))
    text = (yield from ask(call, "the names could not be compared")).text
    decision = same_entity(text)
    if decision is None:
        raise UndeterminedError(f"neither yes nor no can be read from {text!r:.100}")
    return decision
