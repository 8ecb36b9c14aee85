"""Define what must not leak, how leaks are found, and how an attack counts its results.

Each rejected text has its own letter, from an alphabet that is used for nothing else here. A leak
is such a letter in something that a client got, however deep inside and in whatever encoding.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MARKS = "".join(map(chr, range(0x10D0, 0x10F0)))
"""Georgian letters; the n-th letter marks the n-th rejected text. They have no case and no other
form."""
GOOD = "The Amber Tower stands in Lund."
RIGHT = f"{GOOD} It is 84 metres tall."
QUESTION = "How tall is the Amber Tower?"
DOCUMENT = f"{RIGHT} It was opened in 1911."
LIMIT = 10.0
"""The number of seconds after which a call counts as hung."""

_ESCAPED = re.compile(r"\\+u(10[d-e][0-9a-f])", re.IGNORECASE)
_BYTES = re.compile(r"\\+xe1\\+x83\\+x([0-9a-f]{2})", re.IGNORECASE)
_SHOWN = 160


def wrong(number: int, alone: bool = False) -> str:
    """Return the n-th text that must be rejected; with `alone`, no right sentence precedes it."""
    said = f"It is {MARKS[number] * 3} metres tall."
    return said if alone else f"{GOOD} {said}"


def is_wrong(text: str) -> bool:
    """Return whether a text must be rejected."""
    return any(MARKS[0] <= sign <= MARKS[-1] for sign in text)


def marks(*things: Any) -> set[int]:
    """Return the numbers of the rejected texts whose letter occurs in any of these things."""
    told = " ".join(map(_told, things))
    told = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), told)
    told = _BYTES.sub(lambda found: chr(0x10C0 - 0x80 + int(found[1], 16)), told)
    return {ord(sign) - ord(MARKS[0]) for sign in set(told) if MARKS[0] <= sign <= MARKS[-1]}


def _told(thing: Any) -> str:
    if not isinstance(thing, BaseException):
        return repr(thing)
    # This is what a log shows: causes, contexts and lines of code, which contain no letter.
    return f"{thing!r} {''.join(traceback.format_exception(thing))}"


class Hung(BaseException):
    """Report a call that took too long.

    It is no `Exception`, so that no code catches it on the way.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `Hung` in the main thread if the block takes longer than `seconds`."""

    def hang(*_: object) -> None:
        raise Hung(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(
    call: Callable[[], Any], loop: asyncio.AbstractEventLoop
) -> tuple[Any, BaseException | None]:
    """Make a call, asynchronous or not, and return its result, or the error that it ends with.

    The error is `Hung` if the call takes longer than `LIMIT`.
    """
    try:
        with time_limit(LIMIT):
            found = call()
            return (loop.run_until_complete(found) if inspect.isawaitable(found) else found), None
    except (Exception, Hung) as error:
        return None, error


@dataclass
class Tally:
    """Count the results of one kind of attack."""

    what: str
    unit: str = "combinations"
    tried: int = 0
    refused: int = 0
    """The number of attempts that demur refused, because it does not support them and says so."""
    found: dict[str, Counter[str]] = field(
        default_factory=lambda: {"leaks": Counter(), "wrong": Counter(), "hung": Counter()}
    )
    """The bad results, by verdict and kind."""
    examples: dict[str, str] = field(default_factory=dict)
    """The first example of each kind."""
    notes: list[str] = field(default_factory=list)
    """Further lines to print, such as figures."""
    seconds: float = 0.0
    _began: float = 0.0

    def __enter__(self) -> Tally:
        """Count one more attempt, and start measuring its time."""
        self.tried += 1
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._began

    def add(self, verdict: str, kind: str, example: Any = "") -> None:
        """Count a bad result, with the verdict "leaks", "wrong" or "hung"."""
        self.found[verdict][kind] += 1
        self.examples.setdefault(f"{verdict} {kind}", str(example))

    def refuse(self, error: BaseException) -> None:
        """Count an attempt that demur does not support and therefore refuses."""
        self.refused += 1
        if (note := f"refused: {error}"[:_SHOWN]) not in self.notes:
            self.notes.append(note)

    @property
    def bad(self) -> int:
        """Return the number of bad results."""
        return sum(one.total() for one in self.found.values())

    def lines(self, show: int) -> Iterator[str]:
        """Yield the line of this kind of attack, and its bad results, the most frequent first."""
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
