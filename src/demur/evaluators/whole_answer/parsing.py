"""Read which of two words a judge wrote, and the two statements that it quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from demur.evaluators.hedges import DOUBT, PART, TAKEN_BACK
from demur.runtime.prompting import as_shown, without_delimiters, without_echo
from demur.schema import Span

_UNSURE = re.compile(f"{PART}|{DOUBT}", re.I)
_BULLET = re.compile(r"\s*(?:[-*•–]\s+|\(?\d{1,2}[.):]\s*)?")
_QUOTATION = " \t\"'`*_“”„‘’«»「」"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Words:
    """Hold the two words between which a judge chooses, both in lower case."""

    good: str
    """The word that lets an answer pass; `bad` makes it fail."""
    bad: str

    @cached_property
    def alone(self) -> re.Pattern[str]:
        """Return the pattern of a line that has one of the words and nothing else."""
        return re.compile(
            r"\W*(?:(?:the |my |final )*(?:answer|verdict|label|judge?ment)\W+(?:is\W+)?)?"
            rf"({self.good}|{self.bad})[^\w?]*",
            re.I,
        )

    @cached_property
    def begins(self) -> re.Pattern[str]:
        """Return the pattern of a line that begins with one of the words."""
        return re.compile(
            rf"[\s\"'*_`]*({self.good}|{self.bad})[\"'*_`]*\s*[,.;:!\u2013\u2014-]\s*(.*)", re.I
        )

    def read(self, reply: str, shown: Sequence[str] = ()) -> bool | None:
        """Return whether a reply says the good word, or None if it says neither word plainly.

        The verdict is a word that stands alone in the first or the last line, or that begins the
        first line. The good word lets an answer pass, so it counts only if nothing in the reply
        limits it or takes it back. Text that the reply copies from `shown` does not count.
        """
        text = without_echo(without_delimiters(reply), shown)
        lines = [line for line in text.splitlines() if any(map(str.isalnum, line))]
        if not lines:
            return None
        ends = (0, len(lines) - 1)
        alone = {at: match for at in ends if (match := self.alone.fullmatch(lines[at]))}
        said = {match[1].lower() for match in alone.values()}
        rest = [line for at, line in enumerate(lines) if at not in alone]
        copied = 0 in alone or _is_shown(lines[0], shown)
        begun = None if copied else self.begins.fullmatch(lines[0])
        if begun:
            said.add(begun[1].lower())
            rest[0] = begun[2]
        if len(said) != 1:
            return None
        if said == {self.good}:
            return None if TAKEN_BACK.search("\n".join(rest)) else True
        # Reasons or quotes follow the bad word, so only its own line can take it back.
        return None if begun and self._takes_back(begun[2]) else False

    def _takes_back(self, behind: str) -> bool:
        good = re.search(rf"(?<!\w){self.good}(?!\w)", behind, re.I)
        return bool(good or _UNSURE.search(behind))


def _is_shown(line: str, shown: Sequence[str]) -> bool:
    """Return whether a line is copied: "Yes, it is open." may be the answer's own words."""
    return any(line.strip().casefold() in as_shown(text).casefold() for text in shown)


def parse_quotes(reply: str, answer: str) -> tuple[Span, Span] | None:
    """Return where in the answer the two statements stand that a reply quotes behind its verdict.

    The result is None unless two lines of the reply stand in the answer in the same words, and
    neither lies within the other.
    """
    lines = without_delimiters(reply).strip().splitlines()[1:]
    found = [span for line in lines if (span := _place(line, answer)) is not None]
    for at, first in enumerate(found):
        for second in found[at + 1 :]:
            if not (_within(first, second) or _within(second, first)):
                return first, second
    return None


def _place(line: str, answer: str) -> Span | None:
    quote = _BULLET.sub("", line, count=1).strip(_QUOTATION)
    words = _WORD.findall(quote)
    if not words or len(quote) > len(answer) + 1:
        return None
    pattern = r"(?<!\w)" + r"\W+".join(map(re.escape, words)) + r"(?!\w)"
    # Scripts without spaces have no word boundaries.
    match = re.search(pattern, answer, re.I) or (
        None if quote.isascii() else re.search(re.escape(quote), answer)
    )
    return Span(start=match.start(), end=match.end()) if match else None


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
