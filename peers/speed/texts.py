"""Make the answers that every peer scores, whose right scores are known.

They are those of `demur_research.texts.bland`: five facts in four sentences, over three passages.
In two of three answers, one or two facts are changed. So the scores differ, and a score that was
given to the wrong answer shows.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Literal

from demur_research.texts.bland import samples

Unit = Literal["claims", "sentences", "passages", "whole"]
"""What a peer's score is a share of: the facts or sentences that hold, or the passages that the
answer agrees with. With "whole" it is 1 for an answer that holds as a whole, else 0."""

_FACTS = 5
_SENTENCES = 4
_PASSAGES = 3


@dataclass(frozen=True)
class Text:
    """Hold an answer, with what it is compared with."""

    number: int
    """The number of the text; modulo 3, it is the number of wrong facts."""
    question: str
    answer: str
    contexts: tuple[str, ...]

    def score(self, unit: Unit) -> float:
        """Return the right score, in [0, 1]. No sentence and no passage has two wrong facts."""
        wrong = self.number % 3
        if unit == "whole":
            return float(not wrong)
        return 1 - wrong / {"claims": _FACTS, "sentences": _SENTENCES, "passages": _PASSAGES}[unit]

    def as_json(self) -> dict[str, object]:
        """Return what an adapter is given, without the number, which tells the right score."""
        told = asdict(self)
        del told["number"]
        return told


def texts(count: int) -> list[Text]:
    """Return `count` different answers, always the same."""
    return [
        Text(
            number=number,
            question=sample.question or "",
            answer=_spoilt(sample.answer, wrong=number % 3),
            contexts=tuple(context.page_content for context in sample.contexts),
        )
        for number, sample in enumerate(samples(count))
    ]


def _spoilt(answer: str, wrong: int) -> str:
    """Return the answer with one room more and, for two wrong facts, a later year."""
    for fact in (r"(?<=it has )\d+(?= rooms)", r"(?<=rebuilt in )\d+")[:wrong]:
        answer = re.sub(fact, lambda number: str(int(number[0]) + 1), answer)
    return answer
