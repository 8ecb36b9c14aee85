"""What must not get out, how it is looked for, and how an attack counts.

Every rejected text has a letter of its own out of an alphabet that nothing else here is written in.
A leak is such a letter in what a client got, however deep inside and in whatever writing.
"""

from __future__ import annotations

import re
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MARKS = "".join(map(chr, range(0x10D0, 0x10F0)))
"""Georgian letters: the n-th marks the n-th rejected text. They have no case and no other form."""
GOOD = "The Amber Tower stands in Lund."
RIGHT = f"{GOOD} It is 84 metres tall."
QUESTION = "How tall is the Amber Tower?"
DOCUMENT = f"{RIGHT} It was opened in 1911."

_ESCAPED = re.compile(r"\\+u(10[d-e][0-9a-f])", re.IGNORECASE)
_BYTES = re.compile(r"\\+xe1\\+x83\\+x([0-9a-f]{2})", re.IGNORECASE)
_SHOWN = 160


def wrong(number: int, alone: bool = False) -> str:
    """The n-th text that is to be rejected; `alone`: without a right sentence before it."""
    said = f"It is {MARKS[number] * 3} metres tall."
    return said if alone else f"{GOOD} {said}"


def is_wrong(text: str) -> bool:
    """Whether a text is to be rejected."""
    return any(MARKS[0] <= sign <= MARKS[-1] for sign in text)


def marks(*things: Any) -> set[int]:
    """The numbers of the rejected texts of which a letter stands in any of these things."""
    told = " ".join(map(_told, things))
    told = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), told)
    told = _BYTES.sub(lambda found: chr(0x10C0 - 0x80 + int(found[1], 16)), told)
    return {ord(sign) - ord(MARKS[0]) for sign in set(told) if MARKS[0] <= sign <= MARKS[-1]}


def _told(thing: Any) -> str:
    if not isinstance(thing, BaseException):
        return repr(thing)
    # As a log has it: with causes and contexts, and with the lines of code, which hold no letter.
    return f"{thing!r} {''.join(traceback.format_exception(thing))}"


class Hung(BaseException):
    """A call took longer than any should. No `Exception`, so that nothing on its way keeps it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `Hung` in the main thread when it takes longer."""

    def hang(*_: object) -> None:
        raise Hung(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Tally:
    """What became of one kind of attack."""

    what: str
    unit: str = "combinations"
    tried: int = 0
    refused: int = 0
    """Those that demur does not do, and says so."""
    found: dict[str, Counter[str]] = field(
        default_factory=lambda: {"leaks": Counter(), "wrong": Counter(), "hung": Counter()}
    )
    """By kind."""
    examples: dict[str, str] = field(default_factory=dict)
    """One of each kind, to begin with."""
    notes: list[str] = field(default_factory=list)
    """Figures that are neither."""
    seconds: float = 0.0
    _began: float = 0.0

    def __enter__(self) -> Tally:
        """One more is tried, and its time counts."""
        self.tried += 1
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._began

    def add(self, verdict: str, kind: str, example: Any = "") -> None:
        """Count something that should not be: of the verdict "leaks", "wrong" or "hung"."""
        self.found[verdict][kind] += 1
        self.examples.setdefault(f"{verdict} {kind}", str(example))

    def refuse(self, error: BaseException) -> None:
        """Count what demur does not do, and says so."""
        self.refused += 1
        if (note := f"refused: {error}"[:_SHOWN]) not in self.notes:
            self.notes.append(note)

    @property
    def bad(self) -> int:
        """How much there is that should not be."""
        return sum(one.total() for one in self.found.values())

    def lines(self, show: int) -> Iterator[str]:
        """The line of this kind, and under it what was found, the most frequent first."""
        counts = " / ".join(f"{one.total():,}" for one in self.found.values())
        refused = f", {self.refused:,} refused" if self.refused else ""
        tried = f"{self.what:<52} {self.tried:>9,} {self.unit:<13}"
        yield f"{tried} {counts:<18} {self.seconds:6.1f} s{refused}"
        yield from (f"    {note}" for note in self.notes)
        for verdict, kinds in self.found.items():
            for kind, number in kinds.most_common(show):
                example = " ".join(self.examples[f"{verdict} {kind}"].split())
                yield f"    {verdict} {number:>6,}  {kind}"
                if example:
                    yield f"        {example[:_SHOWN]}"
            if (more := len(kinds) - show) > 0:
                yield f"    {verdict}: {more:,} more kinds"
