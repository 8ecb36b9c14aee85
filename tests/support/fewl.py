"""Provide canned replies for FEWL: two reference answers and three pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from demur import FEWL
from demur.evaluators import NeighborStore
from support.fakes import ScriptedModel
from support.vectors import Told

QUESTION = "1 0 | who lit the tower?"
"""A question to which `Told` gives the vector [1, 0]."""
HIGH, LOW = "Ada lit it.", "Bo lit it."
"""The reference answers."""
ANSWERS = f"1. {HIGH}\n2. {LOW}"
PAIRS = """\
1. Wrong Answer: A fox.
1. Non-Wrong Answer: No fox.
2. Wrong Answer: A cat.
2. Non-Wrong Answer: No cat.
3. Wrong Answer: An owl.
3. Non-Wrong Answer: No owl."""

Reply = str | AIMessage | Exception
Replies = Mapping[str, Reply | Callable[[Sequence[BaseMessage]], Reply]]
"""The replies by stage. An exception is raised."""


def model(**replies: Any) -> ScriptedModel:
    """Return a chat model that answers and writes pairs; `replies` replaces replies by stage."""
    known: Replies = {"reference": ANSWERS, "pairs": PAIRS, **replies}

    def script(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
        reply = known[stage]
        if callable(reply):
            reply = reply(messages)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return ScriptedModel(script=script)


def store(*entries: tuple[str, Sequence[str]]) -> NeighborStore:
    """Return a store in memory with the references' answers to some questions."""
    made = NeighborStore(embedding=Told())
    for question, answers in entries:
        made.add(question, answers)
    return made


def half(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Give every pair the similarity 0.5, which tells no texts apart."""
    return [0.5] * len(pairs)


def fewl(reference_models: Any = None, **options: Any) -> FEWL:
    """Return a FEWL of one model with two answers, without neighbours or penalty unless given."""
    given: dict[str, Any] = {
        "similarity": half,
        "n_answers": 2,
        "neighbors": store(),
        "penalty": False,
        **options,
    }
    return FEWL(model() if reference_models is None else reference_models, **given)
