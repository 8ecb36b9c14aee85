"""Find the question and the contexts in a chain's input and output."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel, ValidationError

from demur.errors import DemurError
from demur.schema import Sample
from demur.shapes.forms import as_messages
from demur.shapes.readers import ContextsReader, Reader, kind_of, read, read_contexts

QUESTION_KEYS = ("input", "question", "query")
ANSWER_KEYS = ("answer", "output", "result", "response")
CONTEXT_KEYS = ("context", "contexts", "source_documents", "documents")


class Own(str):
    """Represent a key that a demur integration puts beside an answer; its value always stays."""

    __slots__ = ()


CALLS = Own("demur:calls")
"""The key of an output under which an integration puts the calls of an agent, as documents."""


def find_question(input: Any, reader: Reader | None = None) -> str | None:
    """Return the question in a chain's input, or None if there is none.

    The question is a string, a message, or the value under one of `QUESTION_KEYS` in a mapping, a
    pydantic model or a dataclass. In a list of messages, or under `messages`, it is what the user
    said last. Messages may be in short form, `("user", "...")`, or as they dump themselves.

    Raises:
        DemurError: `reader` was given, and the value that it finds is not a text.
    """
    if reader is not None:
        value = read(reader, input, "question")
        question = value if value is None else _last_text(value)
        if value is not None and question is None:
            raise DemurError(f"question= found {kind_of(value)}, expected a string or a message")
        return question
    input = as_fields(input)
    if isinstance(input, Mapping):
        values = [input[key] for key in (*QUESTION_KEYS, "messages") if key in input]
    else:
        values = [input]
    return next((text for text in map(_last_text, values) if text), None)


def find_contexts(
    input: Any, output: Any, captured: Sequence[Document], reader: ContextsReader | None = None
) -> tuple[Document, ...]:
    """Return the documents from which the chain gave its answer.

    They come from the first of these places that has any: one of `CONTEXT_KEYS` of the output, the
    chain's own retrievers (`captured`), or one of `CONTEXT_KEYS` of the input.

    With a `reader`, they come from it alone. A key is looked for in the output, then in the input.
    A function gets the output. If it has two required parameters, it gets the input and the output.

    The calls of an agent (`CALLS`) follow them in any case.

    Raises:
        DemurError: `reader` was given, and the value that it finds is not documents.
    """
    calls: Sequence[Document] = output.get(CALLS, ()) if isinstance(output, Mapping) else ()
    if reader is not None:
        value = read_contexts(reader, input, output)
        documents = as_documents(value)
        if documents is None:
            raise DemurError(
                f"contexts= found {kind_of(value)}, expected documents or strings (a list of them)"
            )
        return (*documents, *calls)
    found = under_context_keys(output) or tuple(captured) or under_context_keys(input)
    return (*found, *calls)


def with_found(output: Any, found: Sequence[Document], keys: Collection[str]) -> Any:
    """Return an output whose documents include those that were found.

    Args:
        output: The chain's output. A key without documents does not change.
        found: The documents that the answer also rests on.
        keys: The keys of a mapping that may hold documents. A list of texts stays a list of texts.
            A single text is followed by the further texts.
    """
    if not isinstance(output, MutableMapping):
        return output
    changed = copy.copy(output)
    for key in keys & output.keys():
        if held := as_documents(output[key]):
            changed[key] = _in_form(output[key], distinct([*held, *found]))
    return changed


def _in_form(value: Any, documents: Sequence[Document]) -> Any:
    texts = [document.page_content for document in documents]
    if isinstance(value, str):
        return "\n\n".join(texts)
    entries = texts if isinstance(value, list | tuple) and isinstance(value[0], str) else documents
    return tuple(entries) if isinstance(value, tuple) else list(entries)


def text_of(value: Any) -> str | None:
    """Return the text of a string or a message, or None for anything else."""
    if isinstance(value, str):
        return value
    return str(value.text) if isinstance(value, BaseMessage) else None


def _last_text(value: Any) -> str | None:
    """Return the text of a string or a message; of several messages, the user's last one."""
    if isinstance(value, PromptValue):
        value = value.to_messages()
    if isinstance(value, Sequence) and not isinstance(value, str):
        sent = [m for m in as_messages(value) if isinstance(m, HumanMessage)]
        value = sent[-1] if sent else None
    return text_of(value)


def under_context_keys(value: Any) -> tuple[Document, ...]:
    """Return the documents under the first of `CONTEXT_KEYS` that holds any."""
    if not isinstance(value, Mapping):
        return ()
    candidates = (as_documents(value[key]) for key in CONTEXT_KEYS if key in value)
    return next((documents for documents in candidates if documents), ())


def as_documents(value: Any) -> tuple[Document, ...] | None:
    """Return documents or strings as documents, or None for anything else.

    A single document or string, or a list of them, is accepted.
    """
    try:
        return Sample(answer="", contexts=value).contexts
    except ValidationError:
        return None


def distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return the documents in order, without those whose text an earlier one has."""
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(document.page_content, document)
    return tuple(first.values())


def as_fields(input: Any) -> Any:
    """Return a graph's state, a pydantic model or a dataclass as a mapping, others unchanged."""
    if isinstance(input, BaseModel) and not isinstance(input, (BaseMessage, PromptValue)):
        return dict(input)
    if is_dataclass(input) and not isinstance(input, type):
        return {field.name: getattr(input, field.name) for field in fields(input)}
    return input
