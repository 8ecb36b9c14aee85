"""Where question and contexts stand in what goes into a chain and comes out of it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.load.serializable import Serializable
from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel, ValidationError

from demur.errors import DemurError
from demur.schema import Sample

Reader = str | Callable[[Any], Any]
"""How to find something: a key, or a function."""
ContextsReader = Reader | Callable[[Any, Any], Any]
"""The same for contexts, whose function may take the input and the output."""

QUESTION_KEYS = ("input", "question", "query")
CONTEXT_KEYS = ("context", "contexts", "source_documents", "documents")


def find_question(input: Any, reader: Reader | None = None) -> str | None:
    """The question in a chain's input.

    A string, a message, or one of `QUESTION_KEYS` of a mapping, a pydantic model or a dataclass; of
    several messages, or under `messages`, what the user said last, where they are in short form
    (`("user", "...")`) too. None where there is no such thing.

    Raises:
        DemurError: `reader` was given and finds no text.
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
    """The documents that the answer was given from.

    Those under one of `CONTEXT_KEYS` of the output; else what the chain's own retrievers returned;
    else those of the input; else none. A key is looked for in the output, then in the input. A
    function is given the output; one with two required parameters, the input and the output.

    Raises:
        DemurError: `reader` was given and finds no documents.
    """
    if reader is not None:
        value = _read_contexts(reader, input, output)
        documents = as_documents(value)
        if documents is None:
            raise DemurError(
                f"contexts= found {kind_of(value)}, expected documents or strings (a list of them)"
            )
        return documents
    return under_context_keys(output) or tuple(captured) or under_context_keys(input)


def _read_contexts(reader: ContextsReader, input: Any, output: Any) -> Any:
    if callable(reader):
        given = (input, output) if _takes_two(reader) else (output,)
        return reader(*given)
    held = isinstance(output, Mapping) and reader in output
    return read(reader, output if held else input, "contexts")


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function has to be given two arguments. One that does not say takes one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) == 2


def with_found(output: Any, found: Sequence[Document], keys: Collection[str]) -> Any:
    """An output that gives out what was found, too, where it gives out documents.

    Args:
        output: A chain's.
        found: What its answer also rests on.
        keys: Those of a mapping that may hold documents. A list of texts stays one, and a text has
            further ones under it.
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
    """The text of a string or a message; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value.text) if isinstance(value, BaseMessage) else None


def _last_text(value: Any) -> str | None:
    """The text of a string or message; of several messages, the last that the user sent."""
    if isinstance(value, PromptValue):
        value = value.to_messages()
    if isinstance(value, Sequence) and not isinstance(value, str):
        sent = [m for m in as_messages(value) if m.type == "human"]
        value = sent[-1] if sent else None
    return text_of(value)


def prompt_messages(prompt: Any) -> list[BaseMessage]:
    """A prompt as LangChain's chat models take it, as messages.

    Raises:
        DemurError: It is none.
    """
    if isinstance(prompt, PromptValue):
        return prompt.to_messages()
    if isinstance(prompt, str) and prompt:
        return [HumanMessage(prompt)]
    messages = as_messages(prompt) if isinstance(prompt, Sequence) and prompt else []
    if not messages:
        raise DemurError(f"expected a prompt, which is a text or messages, got {kind_of(prompt)}")
    return messages


def as_messages(value: Sequence[Any]) -> list[BaseMessage]:
    """The messages among some values; all of them where some are in short form."""
    if not all(map(_is_message, value)):
        return [message for message in value if isinstance(message, BaseMessage)]
    try:
        return convert_to_messages(value)
    except (ValueError, TypeError, NotImplementedError):  # tuples of something else
        return []


def _is_message(value: Any) -> bool:
    short = isinstance(value, tuple) or (isinstance(value, Mapping) and "role" in value)
    return short or isinstance(value, BaseMessage)


def under_context_keys(value: Any) -> tuple[Document, ...]:
    """The documents under the first of `CONTEXT_KEYS` that holds some."""
    if not isinstance(value, Mapping):
        return ()
    candidates = (as_documents(value[key]) for key in CONTEXT_KEYS if key in value)
    return next((documents for documents in candidates if documents), ())


def as_documents(value: Any) -> tuple[Document, ...] | None:
    """Documents, or strings as such; None where it is neither of them nor a list of them."""
    try:
        return Sample(answer="", contexts=value).contexts
    except ValidationError:
        return None


def distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """The documents in their order; of those with the same text, the first."""
    first: dict[str, Document] = {}
    for document in documents:
        first.setdefault(document.page_content, document)
    return tuple(first.values())


def read(reader: Reader, source: Any, name: str) -> Any:
    """What a key of a mapping, a field of a pydantic object, or a function gives.

    Raises:
        DemurError: There is no such key; the message has the argument's `name`.
    """
    if callable(reader):
        return reader(source)
    if isinstance(source, Mapping) and reader in source:
        return source[reader]
    if isinstance(source, BaseModel) and reader in type(source).model_fields:
        return getattr(source, reader)
    raise DemurError(f"{name}={reader!r}: there is no such key in {kind_of(source)}")


def as_fields(input: Any) -> Any:
    """A graph's state, a pydantic model or a dataclass, as a mapping; all else as it is."""
    if isinstance(input, BaseModel) and not isinstance(input, (BaseMessage, PromptValue)):
        return dict(input)
    if is_dataclass(input) and not isinstance(input, type):
        return {field.name: getattr(input, field.name) for field in fields(input)}
    return input


def kind_of(value: Any) -> str:
    """What something is, in words: with its keys but without its content."""
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    if isinstance(value, Mapping):
        return f"{article} {name} with the keys {', '.join(map(repr, value)) or '(none)'}"
    if isinstance(value, BaseModel) and not isinstance(value, Serializable):
        return f"{article} {name} with the fields {', '.join(type(value).model_fields)}"
    return f"{article} {name}"
