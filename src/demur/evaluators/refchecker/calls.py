"""Read the calls of an agent among the contexts of a sample."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from demur.evaluators.refchecker.content_words import beginnings
from demur.schema import Claim, ClaimLabel, Evidence, Sample, Span
from demur.shapes import (
    READING,
    CallStatus,
    only_reads,
    parts_of_call,
    status_of_call,
    words_of,
)

# Words of the names of tools that tell what is read.
_READ_FROM = frozenset(["google", "web", "wiki"])
# Words of the names of tools that keep what the assistant thinks.
_NOTES = frozenset(
    ["memo", "memory", "note", "notes", "reflect", "remember", "scratchpad", "think", "thought"]
)
_MOST_QUOTED = 300
_COPIED = 0.8  # The share of a text's words in one argument from which it is the text itself.
_LEAST_REPEATED = 3  # Shorter texts are names, which results repeat for good reason.
_ARGUMENT_NAME = re.compile(r"\A\w+=")


@dataclass(frozen=True)
class Call:
    """Hold a call of a tool, as a document of the contexts describes it."""

    at: int
    """The index of the document in the contexts."""
    id: str | None
    text: str
    status: CallStatus
    tool: str
    earlier: bool
    """Whether the call stands before the user's last message."""
    parts: tuple[str, ...]
    """The name of the tool as the text has it, and each argument with its name."""

    @property
    def arguments(self) -> str:
        """Return the name of the tool and the arguments."""
        return f"{self.parts[0]}({', '.join(self.parts[1:])})"

    @property
    def unfinished(self) -> bool:
        """Return whether the call failed, or has not finished."""
        return self.status in ("failed", "pending")

    @cached_property
    def changes_nothing(self) -> bool:
        """Return whether the tool reads something or keeps a note, by its name."""
        return not (READING | _READ_FROM | _NOTES).isdisjoint(words_of(self.tool))

    @cached_property
    def only_reads(self) -> bool:
        """Return whether the name of the tool begins with reading, as in "search_flights"."""
        return only_reads(self.tool)

    def copies(self, text: str) -> list[str]:
        """Return the arguments that say nearly all of a text, which the assistant wrote itself."""
        wanted = beginnings(text)
        return [value for value, said in self._values if _nearly(wanted, said)]

    @cached_property
    def _values(self) -> list[tuple[str, frozenset[str]]]:
        values = (_ARGUMENT_NAME.sub("", part) for part in self.parts)
        return [(value, beginnings(value)) for value in values]

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the beginnings of the words of the call's name and arguments."""
        return beginnings(f"{' '.join(words_of(self.arguments))} {self.arguments}")


def calls_in(sample: Sample) -> list[Call]:
    """Return the calls among a sample's contexts, in their order."""
    calls = []
    for at, document in enumerate(sample.contexts):
        if (status := status_of_call(document)) is not None:
            text, about = document.page_content, document.metadata
            tool, earlier = str(about.get("tool") or ""), bool(about["earlier"])
            id_ = about.get("tool_call_id")
            calls.append(Call(at, id_, text, status, tool, earlier, parts_of_call(document)))
    return calls


def repeating(words: str, calls: Sequence[Call], sample: Sample) -> list[int]:
    """Return the results that say a text only because they repeat an argument of their call."""
    wanted = beginnings(words)
    copies = {call.id: copied for call in calls if (copied := call.copies(words))}
    if not copies or len(wanted) < _LEAST_REPEATED:
        return []
    found = []
    for at, document in enumerate(sample.contexts):
        text = rest = document.page_content
        for copy in copies.get(document.metadata.get("tool_call_id"), ()):
            rest = rest.replace(copy, " ").replace(json.dumps(copy)[1:-1], " ")
        if rest != text and not _nearly(wanted, beginnings(rest)):
            found.append(at)
    return found


def _nearly(wanted: frozenset[str], said: frozenset[str]) -> bool:
    return len(wanted & said) >= _COPIED * len(wanted)


def hiding(sample: Sample, hidden: Sequence[int]) -> Sample:
    """Return the sample with an empty text in place of some contexts, so that indices stay."""
    out_of_sight = frozenset(hidden)
    contexts = [
        document.model_copy(update={"page_content": ""}) if at in out_of_sight else document
        for at, document in enumerate(sample.contexts)
    ]
    return sample.model_copy(update={"contexts": tuple(contexts)})


def quoted(call: Call, label: ClaimLabel) -> Evidence:
    """Return the beginning of a call as evidence."""
    end = min(len(call.text), _MOST_QUOTED)
    span = Span(start=0, end=end)
    return Evidence(context=call.at, span=span, text=call.text[:end], label=label)


def calls_like(claim: Claim, calls: Sequence[Call]) -> dict[Call, int]:
    """Return the calls that share words with a claim, and how many; the most alike come first.

    Of calls that share equally many, the latest comes first.
    """
    wanted = beginnings(claim.text)
    shared = {call: len(wanted & call.stems) for call in reversed(calls)}
    ranked = sorted((call for call in shared if shared[call]), key=lambda call: -shared[call])
    return {call: shared[call] for call in ranked}
