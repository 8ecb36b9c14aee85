"""Between demur's prompts and LlamaIndex's templates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate
from llama_index.core.prompts.utils import format_string, get_template_vars

from demur.prompting import Prompt, isolate

Template: TypeAlias = ChatPromptTemplate | PromptTemplate
Turns: TypeAlias = tuple[tuple[MessageRole, str], ...]
"""Roles and texts, which may have variables."""

_KINDS: Mapping[MessageRole, type[BaseMessage]] = {
    MessageRole.SYSTEM: SystemMessage,
    MessageRole.USER: HumanMessage,
    MessageRole.ASSISTANT: AIMessage,
}
_ROLES = {"system": MessageRole.SYSTEM, "human": MessageRole.USER, "ai": MessageRole.ASSISTANT}
_N = "n"
_COUNTED = f"{{{_N}}}"
"""How demur's prompts write how many answers they ask for."""
_MISSING = "\x00"
"""Stands where there is no text. In texts under judgement such signs become spaces."""
_DELIMITER = re.compile(r"<(/?[a-z]+)-[a-z2-7]{10}>")


@dataclass(frozen=True, kw_only=True)
class TemplatePrompt(Prompt):
    """A user's template in the place of one of demur's prompts.

    Each text under judgement takes its variable's place between delimiters that it cannot forge.
    """

    turns: Turns = field(compare=False, repr=False)
    variables: tuple[str, ...]
    """The fields that the template shows. `fields` may get others: each stands before the next."""
    identity: str
    """What tells the template from others, in every process."""

    def messages(self, **values: str | None) -> list[BaseMessage]:
        """The prompt about these texts; a paragraph whose variables have no text is left out."""
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
        if self.system:  # what demur adds to the instructions
            said = turns.pop(0)[1] if turns and turns[0][0] == MessageRole.SYSTEM else ""
            turns.insert(0, (MessageRole.SYSTEM, f"{said}{self.system}".strip()))
        return [_KINDS[role](content=text) for role, text in turns if text]


def as_template(prompt: Prompt) -> ChatPromptTemplate:
    """A prompt as a template: a variable in the place of each field's text."""
    messages = [ChatMessage(role=role, content=text) for role, text in _turns_of(prompt)]
    return ChatPromptTemplate(message_templates=messages)


def as_prompt(
    name: str, template: BasePromptTemplate, ours: Prompt, now: Prompt, further: Collection[str]
) -> Prompt:
    """What a template asks, as a prompt.

    A template that says what `ours` or `now` say is that prompt again, so that nothing changes.

    Args:
        name: The prompt's, for errors.
        template: Of the user.
        ours: demur's own prompt, whose fields are the template's variables. "question" may be
            left out where it is not the only one.
        now: The prompt that it takes the place of.
        further: Variables that the template may have beside those.

    Raises:
        TypeError: It is neither a ChatPromptTemplate nor a PromptTemplate.
        ValueError: It has other variables than those, a value for one of them, roles or content
            that demur does not send, functions or an output parser.
    """
    if not isinstance(template, (ChatPromptTemplate, PromptTemplate)):
        raise TypeError(
            f"prompt {name!r}: expected a ChatPromptTemplate or a PromptTemplate, got "
            f"{type(template).__name__}"
        )
    if template.output_parser is not None:
        raise ValueError(f"prompt {name!r}: it has an output parser, but demur reads the replies")
    if template.function_mappings:
        raise ValueError(
            f"prompt {name!r}: it has functions, which are not called here: write their text into "
            "the template"
        )
    # What is filled in, and what is called otherwise, is so in every request.
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
    """The template's messages, with their roles."""
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
    # The delimiters of examples are a process's.
    return repr([(role.value, _DELIMITER.sub(r"<\1>", text)) for role, text in turns])


def _variables(
    name: str, turns: Turns, fields: tuple[str, ...], further: Collection[str]
) -> tuple[str, ...]:
    """The fields that a template shows, in its order."""
    optional = {"question"} if len(fields) > 1 else set()
    needed = [one for one in fields if one not in optional]
    spare = sorted(optional.intersection(fields).union(further))
    # Not its `template_vars`, which are those of when it was made: its texts may be others now.
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
    """The text, with a section before the paragraph in which something is shown."""
    at = text.find(shown)
    if at < 0:
        return text
    start = text.rfind("\n\n", 0, at)
    start = 0 if start < 0 else start + 2
    return f"{text[:start]}{section}{text[start:]}"
