"""What a judge wrote -> yes or no, and the two statements that it quotes. No model, no network."""

from __future__ import annotations

import re
from collections.abc import Sequence

from demur.evaluators.hedges import DOUBT, PART, TAKEN_BACK
from demur.prompting import as_shown, without_delimiters, without_echo
from demur.schema import Span

_ALONE = re.compile(
    r"\W*(?:(?:the |my |final )*(?:answer|verdict|judge?ment)\W+(?:is\W+)?)?(yes|no)[^\w?]*", re.I
)
_BEGINS = re.compile(r"[\s\"'*_`]*(yes|no)[\"'*_`]*\s*[,.;:!\u2013\u2014-]\s*(.*)", re.I)
_YES = re.compile(r"(?<!\w)yes(?!\w)", re.I)
_UNSURE = re.compile(f"{PART}|{DOUBT}", re.I)
_BULLET = re.compile(r"\s*(?:[-*•–]\s+|\(?\d{1,2}[.):]\s*)?")
_QUOTATION = " \t\"'`*_“”„‘’«»「」"
_WORD = re.compile(r"\w+")


def plain_yes_no(reply: str, shown: Sequence[str] = ()) -> bool | None:
    """Whether a reply says yes; None where it does not say so plainly.

    The verdict is a word alone in the first or the last line, or the word that begins the first
    line. Yes lets an answer pass, so it counts only if nothing in the reply limits it or takes it
    back. What the reply copies from the texts that were `shown` does not count.
    """
    text = without_echo(without_delimiters(reply), shown)
    lines = [line for line in text.splitlines() if any(map(str.isalnum, line))]
    if not lines:
        return None
    alone = {at: match for at in (0, len(lines) - 1) if (match := _ALONE.fullmatch(lines[at]))}
    said = {match[1].lower() for match in alone.values()}
    rest = [line for at, line in enumerate(lines) if at not in alone]
    begun = None if 0 in alone or _is_shown(lines[0], shown) else _BEGINS.fullmatch(lines[0])
    if begun:
        said.add(begun[1].lower())
        rest[0] = begun[2]
    if len(said) != 1:
        return None
    if said == {"yes"}:
        return None if TAKEN_BACK.search("\n".join(rest)) else True
    # Behind a no stand its reasons, or quotes: only its own line can take it back.
    return None if begun and (_YES.search(begun[2]) or _UNSURE.search(begun[2])) else False


def _is_shown(line: str, shown: Sequence[str]) -> bool:
    """Whether a line is copied from what was shown: "Yes, it is open." may be the answer's own."""
    return any(line.strip().casefold() in as_shown(text).casefold() for text in shown)


def parse_quotes(reply: str, answer: str) -> tuple[Span, Span] | None:
    """Where the two statements stand in the answer that a reply quotes behind its verdict.

    None unless two lines of it stand there, in the same words, and neither within the other.
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
    # Scripts without spaces have no edges of words to look for.
    match = re.search(pattern, answer, re.I) or (
        None if quote.isascii() else re.search(re.escape(quote), answer)
    )
    return Span(start=match.start(), end=match.end()) if match else None


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
