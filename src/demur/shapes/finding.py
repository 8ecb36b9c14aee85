"""Where question, answer and contexts stand in what goes into a chain and comes out of it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from demur.errors import DemurError
from demur.schema import Sample

Reader = str | Callable[[Any], Any]
"""How to find something: a key, or a function."""
ContextsReader = Reader | Callable[[Any, Any], Any]
"""The same for contexts, whose function may take the input and the output."""

QUESTION_KEYS = ("input", "question", "query")
ANSWER_KEYS = ("answer", "output", "result", "response")
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


def find_answer(output: Any, reader: Reader | None = None) -> str:
    """All that an answer says: its text, and as JSON what it calls tools with.

    The answer is a chain's output, a string or a message, or stands under one of `ANSWER_KEYS` of a
    mapping.

    Raises:
        DemurError: There is none, or more than one; the message names what was seen.
    """
    answer = _find(output, reader)
    calls = (
        to_json(call["args"], fallback=str).decode()
        for kind in ("tool_calls", "invalid_tool_calls")
        for call in getattr(answer, kind, ())
        if call["args"]
    )
    return "\n".join(text for text in (text_of(answer) or "", *calls) if text)


def find_text(output: Any, reader: Reader | None = None) -> str:
    """The text of an answer alone, as it is streamed.

    Raises:
        DemurError: As `find_answer`.
    """
    return text_of(_find(output, reader)) or ""


def only_judged(output: Any, reader: Reader | None) -> Any:
    """An output whose message has lost what is not judged.

    That is blocks that are no text, what a text's block holds beside it (citations), and
    `additional_kwargs`, where providers put reasoning, refusals and the like.
    """
    if isinstance(output, BaseMessage):
        return _bare(output)
    key = answer_key(output, reader)
    if key is None or (bare := only_judged(output[key], None)) is output[key]:
        return output
    changed = copy.copy(output) if isinstance(output, MutableMapping) else dict(output)
    changed[key] = bare
    return changed


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


def can_edit(output: Any, reader: Reader | None) -> bool:
    """Whether an output of this type can hold another answer."""
    return isinstance(output, (str, BaseMessage)) or (
        isinstance(output, MutableMapping) and answer_key(output, reader) is not None
    )


def edit_answer(
    output: Any,
    reader: Reader | None,
    edit: Callable[[str], str],
    mark: Mapping[str, Any] | None = None,
) -> Any:
    """A copy of an output that `can_edit`, with the text that holds the answer edited.

    A message keeps its id and loses what belonged to the old text; `mark` is put into its
    `response_metadata["demur"]`.
    """
    if isinstance(output, str):
        return edit(output)
    if isinstance(output, BaseMessage):
        return _reworded(output, edit(str(output.text)), mark)
    key = answer_key(output, reader)
    changed = copy.copy(output)
    # The same text under several keys is one answer.
    same = ANSWER_KEYS if reader is None else ()
    for name in {key, *(k for k in same if text_of(output.get(k)) == text_of(output[key]))}:
        changed[name] = edit_answer(output[name], None, edit, mark)
    return changed


def text_of(value: Any) -> str | None:
    """The text of a string or a message; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value.text) if isinstance(value, BaseMessage) else None


def _find(output: Any, reader: Reader | None) -> Any:
    """The string or message that is the answer."""
    if reader is not None:
        value = read(reader, output, "answer")
        if text_of(value) is None:
            raise DemurError(f"answer= found {kind_of(value)}, expected a string or a message")
        return value
    key = answer_key(output, None)
    value = output if key is None else output[key]
    if text_of(value) is None:
        raise DemurError(
            f"no answer can be found in the chain's output, which is {kind_of(output)}. Expected a "
            f"string, a message, or a mapping with one of {', '.join(ANSWER_KEYS)}: name the key "
            "with answer='key', or give a function from the output to the answer"
        )
    if key is not None:
        rivals = [rival for rival in ANSWER_KEYS if _differs(output.get(rival), text_of(value))]
        if rivals:
            raise DemurError(
                f"the chain's output has several answers, under {key!r} and "
                f"{', '.join(map(repr, rivals))}, and only one would be judged: name its key with "
                "answer='key', or leave the others out"
            )
    return value


def _differs(value: Any, text: str | None) -> bool:
    """Whether something says other than this text. Nothing and an empty text say nothing."""
    other_text = text_of(value)
    return value is not None if other_text is None else other_text not in ("", text)


def _bare(message: BaseMessage) -> BaseMessage:
    content = message.content
    if isinstance(content, list):
        content = [
            part if isinstance(part, str) else {"type": "text", "text": part["text"]}
            for part in content
            if isinstance(part, str) or part.get("type") == "text"
        ]
    if content == message.content and not any(message.additional_kwargs.values()):
        return message
    return message.model_copy(update={"content": content, "additional_kwargs": {}})


def answer_key(output: Any, reader: Reader | None) -> str | None:
    """The key of a mapping that holds the answer's text; None where there is none."""
    if not isinstance(output, Mapping):
        return None
    keys = ANSWER_KEYS if reader is None else (reader,)
    return next(
        (key for key in keys if isinstance(key, str) and text_of(output.get(key)) is not None), None
    )


_KEPT = ("id", "name", "type", "role", "tool_call_id", "usage_metadata")
"""What a message keeps that is worded anew: nothing that may hold the old text."""


def _reworded(message: BaseMessage, text: str, mark: Mapping[str, Any] | None) -> BaseMessage:
    kept = {key: value for key in _KEPT if (value := getattr(message, key, None))}
    if mark is not None:
        kept["response_metadata"] = {"demur": dict(mark)}
    kinds = [kind for kind in type(message).__mro__ if issubclass(kind, BaseMessage)]
    for kind in kinds:
        known = {key: value for key, value in kept.items() if key in kind.model_fields}
        with suppress(Exception):  # a class of the user's, which needs more than is kept
            return kind(content=text, **known)
    raise AssertionError  # a BaseMessage needs no more


def _last_text(value: Any) -> str | None:
    """The text of a string or message; of several messages, the last that the user sent."""
    if isinstance(value, PromptValue):
        value = value.to_messages()
    if isinstance(value, Sequence) and not isinstance(value, str):
        sent = [m for m in as_messages(value) if m.type == "human"]
        value = sent[-1] if sent else None
    return text_of(value)


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
    """What a key of a mapping, or a function, gives.

    Raises:
        DemurError: There is no such key; the message has the argument's `name`.
    """
    if callable(reader):
        return reader(source)
    if isinstance(source, Mapping) and reader in source:
        return source[reader]
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
    return f"{article} {name}"
