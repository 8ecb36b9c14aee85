"""Measure the cost of finding the sentences of a streamed answer, by the answer's length.

    python -m bench.sentences [--chars 8000] [--chunk 5] [--form text]

Only the core of the guard is measured. It is fed an answer in chunks and judges its sentences, in
one thread and with a judge that replies at once. The cost is linear if each length takes twice the
time of half that length (a ratio of 2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.measuring import Clock, arguments
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.utils import AddableDict

from demur import Evaluation, Guard, Sample
from demur.evaluators import Evaluator
from demur.guard.call import GuardedCall
from demur.guard.streamed import StreamedAnswer
from demur.runtime import Steps, drive

ANSWERS = {
    "ordinary": "The Amber Tower is 84 metres tall. It was opened in 1911, on a Monday. ",
    "paragraphs": "The Amber Tower is 84 metres tall. It was opened in 1911, by Dr. Orm.\n\n",
    "no letters": "1. ",
    "no letters, no end": "1 ",
    "no end": "and the tower is tall ",
    "no end, no space": "tower",
    "quotes": 'He said "it is tall. ',
    "wrapped lines": "and the tower of the town stands to this day\n",
    "blank": "\n",
    "spaces": " ",
}
FORMS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "message": lambda text: AIMessageChunk(text, id="1"),
    "mapping": lambda text: AddableDict(answer=text),
}
_TIMES = (1, 2, 4, 8)


class _AtOnce(Evaluator):
    """Let every answer pass at once."""

    @property
    def claim_level(self) -> bool:
        return True

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ()
        return Evaluation(name="at once", passed=True)


_PASSED = (Evaluation(name="at once", passed=True),)


def seconds(text: str, form: Callable[[str], Any], chunk: int) -> float:
    """Return the CPU time of one answer."""
    chain = RunnableLambda(str)
    guard = Guard(chain, _AtOnce(), streaming="sentence", contexts=lambda output: [])
    streamed = StreamedAnswer(GuardedCall(guard, "why?", {}))
    chunks = [form(text[at : at + chunk]) for at in range(0, len(text), chunk)]
    clock = Clock()
    with clock:
        for one in chunks:
            streamed.feed(one)
            _go_on(streamed)
        streamed.end()
        while not streamed.settled:
            _go_on(streamed)
        drive(streamed.finish(), {}, None)
    return clock.total.cpu


def _go_on(streamed: StreamedAnswer) -> None:
    for at, _ in streamed.to_judge():
        streamed.judged(at, _PASSED)
    for _ in streamed.leaving():
        pass


def main() -> None:
    """Measure, and print the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--chars", type=int, default=8000, help="characters of the shortest answer")
    parser.add_argument("--chunk", type=int, default=5, help="characters per chunk")
    parser.add_argument("--form", choices=FORMS, default="text", help="form of the chunks")
    given = parser.parse_args()
    lengths = [given.chars * times for times in _TIMES]
    seconds("One. Two.", FORMS[given.form], given.chunk)  # loads what is loaded only once
    print("CPU seconds at so many characters, and how often those of half as many")
    print(f"{'answer':20}", *(f"{length:>15,}" for length in lengths))
    for name, piece in ANSWERS.items():
        print(f"{name:20}", end="", flush=True)
        before = 0.0
        for length in lengths:
            text = (piece * (length // len(piece) + 1))[:length]
            took = seconds(text, FORMS[given.form], given.chunk)
            ratio = f"({took / before:4.1f})" if before else " " * 6
            print(f" {took:8.2f} {ratio}", end="", flush=True)
            before = took
        print()


if __name__ == "__main__":
    main()
