"""Build prompts from instructions, examples, and texts that can give no instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from demur.runtime.prompting.isolation import isolate


@dataclass(frozen=True)
class Example:
    """Hold an earlier turn of a prompt: a question and its reply."""

    values: tuple[tuple[str, str], ...]
    """The fields of the question and their texts."""
    reply: str


@dataclass(frozen=True)
class Prompt:
    """Hold instructions and the fields of texts, each shown between delimiters of its own."""

    system: str
    """The instructions, the same for every request."""
    fields: tuple[str, ...]
    """The names of the texts, in the order in which they are shown. Put first what is the same in
    the next request, such as the reference before the claim: a server that caches prefixes reads it
    once."""
    examples: tuple[Example, ...] = ()
    closing: str = ""
    """The last line of every request, since a small model follows what it read last."""

    def messages(self, **values: str | None) -> list[BaseMessage]:
        """Return the messages for these texts, by field; fields without a text are left out."""
        turns: list[BaseMessage] = [SystemMessage(self.system)]
        for question, reply in _examples(self):
            turns += [HumanMessage(question), AIMessage(reply)]
        return [*turns, HumanMessage(_shown(self, values))]


# Not kept on the prompt, because it would be pickled, and delimiters differ between processes.
@lru_cache(maxsize=256)
def _examples(prompt: Prompt) -> list[tuple[str, str]]:
    """Return the question and the reply of each example, built once for all requests."""
    return [(_shown(prompt, dict(example.values)), example.reply) for example in prompt.examples]


def _shown(prompt: Prompt, values: Mapping[str, str | None]) -> str:
    texts = [(name, values.get(name)) for name in prompt.fields]
    shown = [f"{name.capitalize()}:\n{isolate(name, text)}" for name, text in texts if text]
    return "\n\n".join([*shown, prompt.closing] if prompt.closing else shown)
