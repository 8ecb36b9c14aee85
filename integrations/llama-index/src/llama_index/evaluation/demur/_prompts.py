"""Convert between demur's prompts and LlamaIndex's templates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate
from llama_index.core.prompts.utils import format_string, get_template_vars

from demur.runtime.prompting import Prompt, isolate

Template: TypeAlias = ChatPromptTemplate | PromptTemplate
Turns: TypeAlias = tuple[tuple[MessageRole, str], ...]
"""Roles with texts, which may have variables."""

_KINDS: Mapping[MessageRole, type[BaseMessage]] = {
    MessageRole.SYSTEM: SystemMessage,
    MessageRole.USER: HumanMessage,
    MessageRole.ASSISTANT: AIMessage,
}
_ROLES = {"system": MessageRole.SYSTEM, "human": MessageRole.USER, "ai": MessageRole.ASSISTANT}
_N = "n"
_COUNTED = f"{{{_N}}}"
"""The placeholder in demur's prompts for the number of answers to ask for."""
_MISSING = "\x00"
"""The sign in place of a missing text. In texts under judgement, such a sign becomes a space."""
_DELIMITER = re.compile(r"<(/?[a-z]+)-[a-z2-7]{10}>")


@dataclass(frozen=True, kw_only=True)
class TemplatePrompt(Prompt):
    """Represent a user's template that replaces one of demur's prompts.

    Each text under judgement takes the place of its variable, between delimiters that it cannot
    forge.
    """

    turns: Turns = field(compare=False, repr=False)
    variables: tuple[str, ...]
    """The fields that the template shows, in its order. demur may add other fields to `fields`; the
    text of such a field is shown before the field that follows it."""
    identity: str
    """A text that identifies the template, the same in every process."""

    def messages(self, **values: str | None) -> list[BaseMessage]:
        """Return the messages of the prompt about these texts.

        A paragraph whose variables have no text is left out.
        """
        texts = {name: text for name, text in values.items() if text}
        shown = {
            name: isolate(name, texts[name]) if name in texts else _MISSING
            for name in self.variables
        }
        filled = ((role, format_string(text, n=self.closing, **shown)) for role, text in self.turns)
        turns = [(role, _without_missing(text)) for role, text in filled]
        for name, following in zip(self.fields, self.fields[1:], strict=False):
            if name not in self.variables and name in texts:
                section = f"{name.capitalize()}:\n{isolate(name, texts[name])}\n\n"
                turns = [(role, _before(text, shown[following], section)) for role, text in turns]
        if self.system:  # demur's additions to the instructions
            said = turns.pop(0)[1] if turns and turns[0][0] == MessageRole.SYSTEM else ""
            turns.insert(0, (MessageRole.SYSTEM, f"{said}{self.system}".strip()))
        return [_KINDS[role](content=text) for role, text in turns if text]


def as_template(prompt: Prompt) -> ChatPromptTemplate:
    """Return a prompt as a template with a variable in place of each field's text."""
    messages = [ChatMessage(role=role, content=text) for role, text in _turns_of(prompt)]
    return ChatPromptTemplate(message_templates=messages)


def as_prompt(
    name: str, template: BasePromptTemplate, ours: Prompt, now: Prompt, further: Collection[str]
) -> Prompt:
    """Return the prompt that a template describes.

    If the template says the same as `now` or `ours`, that prompt itself is returned, so that
    nothing changes.

    Args:
        name: The name of the prompt, for errors.
        template: The user's template.
        ours: demur's own prompt. Its fields are the variables that the template must have;
            "question" is optional if it is not the only field.
        now: The prompt that the template replaces.
        further: Other variables that the template may have.

    Raises:
        TypeError: The template is neither a ChatPromptTemplate nor a PromptTemplate.
        ValueError: The template has other variables, a value for a variable, roles or content that
            demur does not send, functions, or an output parser.
    """
    if not isinstance(template, (ChatPromptTemplate, PromptTemplate)):
        raise TypeError(
            f"prompt {name!r}: expected a ChatPromptTemplate or a PromptTemplate, got "
            f"{type(template).__name__}"
        )
    if template.output_parser is not None:
        raise ValueError(
            f"prompt {name!r}: it has an output parser, but demur reads the replies itself: leave "
            "output_parser out"
        )
    if template.function_mappings:
        raise ValueError(
            f"prompt {name!r}: it has functions, which are not called here: write their text into "
            "the template"
        )
    # Values and names that the template maps are the same in every request: filled in here.
    ours_called = {
        theirs: f"{{{one}}}" for one, theirs in (template.template_var_mappings or {}).items()
    }
    given = {**template.kwargs, **ours_called}
    turns = tuple((role, format_string(text, **given)) for role, text in _said(name, template))
    identity = _identity(turns)
    for known in (now, ours):
        if identity == _identity(_turns_of(known)):
            return known
    counted = [_N] if _COUNTED in ours.system + ours.closing else []
    variables = _variables(name, turns, ours.fields, {*further, *counted})
    return TemplatePrompt(
        system="",
        fields=variables,
        closing=_COUNTED,
        turns=turns,
        variables=variables,
        identity=identity,
    )


def _turns_of(prompt: Prompt) -> Turns:
    if isinstance(prompt, TemplatePrompt):
        return prompt.turns
    sections = [f"{name.capitalize()}:\n{{{name}}}" for name in prompt.fields]
    last = "\n\n".join([*sections, prompt.closing] if prompt.closing else sections)
    before = prompt.messages()[:-1]  # the instructions and the examples
    turns = [(_ROLES[message.type], str(message.text)) for message in before]
    return (*turns, (MessageRole.USER, last))


def _said(name: str, template: Template) -> Iterator[tuple[MessageRole, str]]:
    """Yield the template's messages with their roles."""
    if isinstance(template, PromptTemplate):
        yield MessageRole.USER, template.template
        return
    for message in template.message_templates:
        texts = all(isinstance(block, TextBlock) for block in message.blocks)
        if message.role not in _KINDS or not texts:
            roles = ", ".join(role.value for role in _KINDS)
            raise ValueError(
                f"prompt {name!r}: expected texts with the roles {roles}, got a message of "
                f"{message.role.value}{'' if texts else ' that holds more than text'}"
            )
        yield message.role, message.content or ""


def _identity(turns: Turns) -> str:
    # The delimiters of examples differ between processes.
    return repr([(role.value, _DELIMITER.sub(r"<\1>", text)) for role, text in turns])


def _variables(
    name: str, turns: Turns, fields: tuple[str, ...], further: Collection[str]
) -> tuple[str, ...]:
    """Return the fields that a template shows, in its order."""
    optional = {"question"} if len(fields) > 1 else set()
    needed = [one for one in fields if one not in optional]
    spare = sorted(optional.intersection(fields).union(further))
    # Not its `template_vars`: they are from its creation, and its texts may have changed since.
    found = dict.fromkeys(var for _, text in turns for var in get_template_vars(text))
    if not {*needed} <= {*found} <= {*needed, *spare}:
        also = f" (and, if wanted, {_listed(spare)})" if spare else ""
        raise ValueError(
            f"prompt {name!r}: expected the variables {_listed(needed)}{also}, got "
            f"{_listed(found) or 'none'}"
        )
    return tuple(one for one in found if one != _N)


def _listed(variables: Iterable[str]) -> str:
    return ", ".join(f"{{{variable}}}" for variable in variables)


def _without_missing(text: str) -> str:
    if _MISSING not in text:
        return text
    paragraphs = [
        paragraph.replace(_MISSING, "")
        for paragraph in text.split("\n\n")
        if _MISSING not in paragraph or _DELIMITER.search(paragraph)
    ]
    return "\n\n".join(paragraphs)


def _before(text: str, shown: str, section: str) -> str:
    """Return the text with `section` before the paragraph that shows the text `shown`."""
    at = text.find(shown)
    if at < 0:
        return text
    start = text.rfind("\n\n", 0, at)
    start = 0 if start < 0 else start + 2
    return f"{text[:start]}{section}{text[start:]}"
