"""What a run that is over says: its question, its answer, and what the answer was given from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import ValidationError

from demur.errors import DemurError
from demur.evaluators import as_sample
from demur.runtime import describe
from demur.schema import Evaluation, Sample
from demur.shapes import (
    ContextsReader,
    Reader,
    check_reader,
    find_answer,
    find_contexts,
    find_question,
    last_written,
    sources,
    this_turn,
)


@dataclass(frozen=True)
class Readers:
    """Where question, answer and contexts are, as a guard's arguments of these names say it."""

    question: Reader | None = None
    answer: Reader | None = None
    contexts: ContextsReader | None = None

    def __post_init__(self) -> None:
        check_reader("question", self.question, "the input")
        check_reader("answer", self.answer, "the output")
        check_reader("contexts", self.contexts, "the output or of the input")


@dataclass(frozen=True)
class Said:
    """What was found in a run."""

    question: str | None = None
    answer: str = ""
    contexts: tuple[Document, ...] = ()
    evaluation: Evaluation | None = None
    """Of a run that is itself an evaluation."""
    error: str | None = None
    """Why there is no answer to judge, though there should be one."""

    @property
    def sample(self) -> Sample:
        """What an evaluator reads."""
        return Sample(question=self.question, answer=self.answer, contexts=self.contexts)


def read(input: Any, output: Any, documents: Sequence[Document], readers: Readers) -> Said | None:
    """What a run says; None where it gave no answer yet, since its model calls tools.

    Of an agent, whose output is messages, the last that the model wrote in this turn is the answer,
    and what its tools returned are the contexts.
    """
    if isinstance(output, Evaluation):
        return _read_evaluation(input, output)
    question: str | None = None
    try:
        messages = _messages_in(output)
        question = find_question(input, readers.question)
        if question is None and readers.question is None:
            # Of a graph that is resumed, only the state that it ends with has it.
            question = find_question(output if isinstance(output, Mapping) else messages)
        # What was written before this turn is the answer to another question.
        last = last_written(this_turn(messages)) if readers.answer is None else None
        speaks = output if last is None else last
        if isinstance(speaks, AIMessage) and speaks.tool_calls and not str(speaks.text).strip():
            _check_form(output)
            return None
        given = question if find_question(input) is None else input
        answer = find_answer(speaks, readers.answer, given).text
        contexts = find_contexts(input, output, documents, readers.contexts)
        if not contexts and readers.contexts is None:
            contexts = sources(messages)
        return Said(question, answer, contexts)
    except Exception as error:  # a reader of the user's may raise anything
        return Said(question, error=describe(error))


def _messages_in(output: Any) -> Sequence[BaseMessage]:
    """The messages that an agent's output holds."""
    messages = output.get("messages") if isinstance(output, Mapping) else output
    if not isinstance(messages, (list, tuple)):
        return ()
    return [message for message in messages if isinstance(message, BaseMessage)]


def _check_form(output: Any) -> None:
    """Of an agent with `response_format`, the call of the last tool is the answer."""
    if isinstance(output, Mapping) and output.get("structured_response") is not None:
        raise DemurError(
            "no answer can be found: the agent's answer is structured. Give a function that makes "
            "a text of output['structured_response'] with answer="
        )


def _read_evaluation(input: Any, output: Evaluation) -> Said:
    try:
        sample = as_sample(input)
    except (ValidationError, TypeError, ValueError):
        return Said(evaluation=output)  # of a chain that makes the sample itself
    return Said(sample.question, sample.answer, sample.contexts, evaluation=output)
