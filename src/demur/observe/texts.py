"""Find the question, the answer and the contexts in the input and the output of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage

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
    tool_calls,
)


@dataclass(frozen=True)
class Readers:
    """Say where question, answer and contexts are, as the arguments of `Guard` do."""

    question: Reader | None = None
    answer: Reader | None = None
    contexts: ContextsReader | None = None

    def __post_init__(self) -> None:
        check_reader("question", self.question, "the input")
        check_reader("answer", self.answer, "the output")
        check_reader("contexts", self.contexts, "the output or of the input")


@dataclass(frozen=True)
class Said:
    """Hold the texts that were found in a run."""

    question: str | None = None
    answer: str = ""
    contexts: tuple[Document, ...] = ()
    evaluation: Evaluation | None = None
    """The evaluation, if the run is the call of an evaluator."""
    error: str | None = None
    """The reason why no answer was found although the run should have one."""

    @property
    def sample(self) -> Sample:
        """Return the sample that evaluators judge."""
        return Sample(question=self.question, answer=self.answer, contexts=self.contexts)


def read(input: Any, output: Any, documents: Sequence[Document], readers: Readers) -> Said | None:
    """Read the texts of a run; return None if its model only called tools and has not answered yet.

    If the output is the messages of an agent, the answer is the last message that the model wrote
    in this turn, and the contexts are what the agent's tools returned, and its calls.
    """
    if isinstance(output, Evaluation):
        return _read_evaluation(input, output)
    question: str | None = None
    try:
        messages = _messages_in(output)
        question = find_question(input, readers.question)
        if question is None and readers.question is None:
            # If a graph was resumed, only its final state has the question.
            question = find_question(output if isinstance(output, Mapping) else messages)
        # Messages from before this turn answer another question.
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
        calls = tool_calls(messages, complete=False)
        return Said(question, answer, (*contexts, *calls))
    except Exception as error:  # a user's function may raise anything
        return Said(question, error=describe(error))


def _messages_in(output: Any) -> Sequence[BaseMessage]:
    """Return the messages in an agent's output, or nothing if it has none."""
    messages = output.get("messages") if isinstance(output, Mapping) else output
    if not isinstance(messages, (list, tuple)):
        return ()
    return [message for message in messages if isinstance(message, BaseMessage)]


def _check_form(output: Any) -> None:
    """Raise if the agent has a `response_format`: its answer is the last tool call then."""
    if isinstance(output, Mapping) and output.get("structured_response") is not None:
        raise DemurError(
            "no answer can be found: the agent's answer is structured. Give a function that makes "
            "a text of output['structured_response'] with answer="
        )


def _read_evaluation(input: Any, output: Evaluation) -> Said:
    try:
        sample = as_sample(input)
    except ValueError:
        return Said(evaluation=output)  # the chain makes the sample itself
    return Said(sample.question, sample.answer, sample.contexts, evaluation=output)
