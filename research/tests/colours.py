"""Make up questions about the colours of things, and a model that knows the right colours."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage

from demur_research.datasets.rows import Answer, LabelledRow
from support.fakes import ScriptedModel, isolated

COLOURS = ("red", "green", "blue", "grey")


class Apart(Embeddings):
    """Embed questions so that none are similar: each number has a direction of its own."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[0.1, *(float(str(at) in text) for at in range(10))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def colour(at: int) -> str:
    return COLOURS[at % 4]


def chale(count: int = 4) -> list[LabelledRow]:
    """Return rows like those that CHALE's reader returns."""
    return [
        LabelledRow(
            f"c{at}",
            f"which colour has thing {at}",
            (
                Answer(f"{colour(at)} . It is painted .", False, "non_hallu"),
                Answer(f"{colour(at + 1)} . It is painted .", True, "half_hallu"),
                Answer(f"{colour(at + 2)} . It was found .", True, "hallu"),
            ),
            metadata={
                "short_answer": colour(at),
                "long_answer": f"It is painted {colour(at)} , a fine {colour(at)} .",
            },
        )
        for at in range(count)
    ]


def truthfulqa(count: int = 4) -> list[LabelledRow]:
    """Return rows like those that TruthfulQA's reader returns."""
    return [
        LabelledRow(
            f"t{at}",
            f"which colour has thing {at}",
            (
                Answer(f"{colour(at)}, as it is painted.", False, "best"),
                Answer(f"The colour of it is {colour(at)}.", False, "correct-1"),
                Answer(f"{colour(at + 1)}, as it is painted.", True, "incorrect-1"),
                Answer(f"It is {colour(at + 2)}.", True, "incorrect-2"),
            ),
        )
        for at in range(count)
    ]


def halueval(count: int = 4) -> list[LabelledRow]:
    """Return rows like those that the reader of HaluEval's questions returns."""
    return [
        LabelledRow(
            f"h{at}",
            f"which colour has thing {at}",
            (
                Answer(colour(at), False, "right"),
                Answer(f"I think that it is {colour(at + 1)}.", True, "hallucinated"),
            ),
        )
        for at in range(count)
    ]


def reply(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply with the right colour in two ways, and with pairs of the other colours."""
    right = colour(int(isolated("question", messages).rsplit(" ", 1)[1]))
    if stage == "pairs":
        return "\n".join(
            f"{at}. Wrong Answer: It is {wrong}.\n{at}. Non-Wrong Answer: {wrong} is no part of it."
            for at, wrong in enumerate((one for one in COLOURS if one != right), start=1)
        )
    if stage == "agreement":
        return "\n".join(f"{at}. {'yes' if at % 2 else 'no'}" for at in range(1, 7))
    return f"1. {right} . It is painted .\n2. The thing is {right}."


def knowing() -> ScriptedModel:
    return ScriptedModel(script=reply)
