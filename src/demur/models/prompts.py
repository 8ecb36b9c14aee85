"""A prompt: instructions, examples, and texts that can give no instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from demur.models.isolation import isolate


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
        for example in self.examples:
            turns += [HumanMessage(self._shown(dict(example.values))), AIMessage(example.reply)]
        return [*turns, HumanMessage(self._shown(values))]

    def _shown(self, values: Mapping[str, str | None]) -> str:
        texts = [(name, values.get(name)) for name in self.fields]
        shown = [f"{name.capitalize()}:\n{isolate(name, text)}" for name, text in texts if text]
        return "\n\n".join([*shown, self.closing] if self.closing else shown)
