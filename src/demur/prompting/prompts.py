"""A prompt: instructions, examples, and texts that can give no instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from demur.prompting.isolation import isolate


@dataclass(frozen=True)
class Example:
    """An earlier turn of a prompt: what was asked, and what was answered."""

    values: tuple[tuple[str, str], ...]
    """Fields and their texts."""
    reply: str


@dataclass(frozen=True)
class Prompt:
    """Instructions, and the texts they are about, each between delimiters of its own."""

    system: str
    """The instructions, the same for every request."""
    fields: tuple[str, ...]
    """What is shown, in this order. A server that keeps prefixes reads what comes first, and is the
    same in the next request, only once: so the reference stands before the claim."""
    examples: tuple[Example, ...] = ()
    closing: str = ""
    """A last line of every request: a small model follows what it read last."""

    def messages(self, **values: str | None) -> list[BaseMessage]:
        """The prompt about these texts; fields without text are left out."""
        turns: list[BaseMessage] = [SystemMessage(self.system)]
        for question, reply in _examples(self):
            turns += [HumanMessage(question), AIMessage(reply)]
        return [*turns, HumanMessage(_shown(self, values))]


# Not kept with the prompt, since it would be pickled with it, and the delimiters are a process's.
@lru_cache(maxsize=256)
def _examples(prompt: Prompt) -> list[tuple[str, str]]:
    """What was asked and what was answered, once for all requests."""
    return [(_shown(prompt, dict(example.values)), example.reply) for example in prompt.examples]


def _shown(prompt: Prompt, values: Mapping[str, str | None]) -> str:
    texts = [(name, values.get(name)) for name in prompt.fields]
    shown = [f"{name.capitalize()}:\n{isolate(name, text)}" for name, text in texts if text]
    return "\n\n".join([*shown, prompt.closing] if prompt.closing else shown)
