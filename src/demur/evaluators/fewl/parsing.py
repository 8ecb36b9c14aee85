"""Read answers, wrong and corrected pairs, and yes or no from what models wrote.

No model is called, and the network is not used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from demur.runtime.prompting import without_delimiters

# --- Answers ------------------------------------------------------------------------------------

# The marks do not match the beginning of a number, as in "3.5 million" or "12:30".
_NUMBERED = re.compile(
    r"^[ \t>*_#]*(?:answer[ \t]*)?\d{1,3}[ \t]*[.):](?!\d)[*_]*[ \t]*", re.I | re.M
)
_FIRST = re.compile(
    r"[\s>*_#]*(?:answer[ \t]*(?:1[ \t]*)?:|(?:answer[ \t]*)?1[.):](?!\d))[*_]*", re.I
)
_BULLET = re.compile(r"^[ \t>]*[-*\u2022][ \t]+", re.M)
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "[": "]"}


def parse_answers(reply: str, n: int, truncated: bool = False) -> tuple[str, ...]:
    """Return the answers in a reply, at most `n`, in the order of the reply.

    If the reply has numbered items, they are the answers; otherwise its bullets; otherwise its
    lines. A line that ends with a colon only announces answers and is left out. If `n` is 1, the
    whole reply is the answer.

    Args:
        reply: The text that the model wrote.
        n: The number of answers that the model was asked for.
        truncated: Whether the reply was cut at its limit. The last of several answers is then left
            out.
    """
    text = without_delimiters(reply)
    if n == 1:
        mark = _FIRST.match(text)
        answer = (_tidy(text[mark.end() :]) if mark else "") or _tidy(text)
        return (answer,) if answer else ()
    items = _items(text)
    answers = [answer for item in items if (answer := _tidy(item))]
    if truncated and len(answers) > 1:
        answers.pop()
    return tuple(answers[:n])


def _items(text: str) -> list[str]:
    for mark in (_NUMBERED, _BULLET):
        starts = list(mark.finditer(text))
        if starts:
            ends = [match.start() for match in starts[1:]] + [len(text)]
            return [text[start.end() : end] for start, end in zip(starts, ends, strict=True)]
    return [line for line in text.splitlines() if not line.rstrip().endswith(":")]


def _tidy(text: str) -> str:
    """Return the text on one line, without the marks that a model puts around a text."""
    text = " ".join(text.split()).strip("*_ ")
    while len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text


# --- Wrong and corrected pairs --------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """Hold wrong answers with their corrections (v1, section 2.1); count the dropped pairs."""

    usable: tuple[tuple[str, str], ...] = ()
    """The pairs of a wrong answer and its corrected answer."""
    same: int = 0
    """The number of pairs that were dropped because both sides say the same."""
    repeated: int = 0
    """The number of pairs that were dropped because they repeat another pair."""
    incomplete: int = 0
    """The number of pairs that were dropped because a side is missing or empty."""


# The beginning of a side. At the start of a line, the number may be missing. Within a line it may
# not, since an answer may contain "the wrong answer:" itself. No two adjacent repetitions match the
# same characters: a small model's endless run of them would take cubic time.
_SIDE = re.compile(
    r"(?:^[ \t>*_#-]*(?:(?P<first>\d{1,3})[ \t]*[.):][\s*_]*)?"
    r"|(?<=\s)[*_]*(?P<inner>\d{1,3})[ \t]*[.):][\s*_]*)"
    r"(?P<kind>(?:non|not)[\s\u2010-\u2015-]*(?:wrong|false)|corrected|correct|right|wrong|incorrect"
    r"|false)"
    r"\s+(?:answer|statement)(?:\s*\#?(?P<last>\d{1,3}))?[*_\s]*[:\uff1a][*_]*",
    re.I | re.M,
)
_WRONG = {"wrong", "incorrect", "false"}


@dataclass(frozen=True)
class _Side:
    wrong: bool
    number: int | None
    text: str


def parse_pairs(reply: str, truncated: bool = False) -> Pairs:
    """Return the pairs in a reply that follows the papers' numbered template, more or less.

    The template is "1. Wrong Answer: ..." and "1. Non-Wrong Answer: ...". Some variants are read
    too: other words for the two sides, markup, missing numbers, both sides on one line, and all
    wrong answers before all others.

    Args:
        reply: The text that the model wrote.
        truncated: Whether the reply was cut at its limit. Its last side then does not count.
    """
    sides = list(_sides(without_delimiters(reply)))
    if truncated and sides:
        sides[-1] = _Side(sides[-1].wrong, sides[-1].number, "")
    usable: dict[tuple[str, str], tuple[str, str]] = {}
    same = repeated = incomplete = 0
    for wrong, corrected in _matched(sides):
        pair = normalized_text(wrong), normalized_text(corrected)
        if not all(pair):
            incomplete += 1
        elif pair[0] == pair[1]:
            same += 1
        elif pair in usable:
            repeated += 1
        else:
            usable[pair] = (wrong, corrected)
    return Pairs(tuple(usable.values()), same, repeated, incomplete)


def _sides(text: str) -> Iterator[_Side]:
    heads = list(_SIDE.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    for head, end in zip(heads, ends, strict=True):
        number = head["first"] or head["inner"] or head["last"]
        body = _tidy(text[head.end() : end])
        wrong = head["kind"].lower() in _WRONG
        yield _Side(wrong, int(number) if number else None, body)


def _matched(sides: Sequence[_Side]) -> Iterator[tuple[str, str]]:
    """Yield pairs of a wrong and a corrected text, by their numbers or else by their order.

    A missing side is an empty text.
    """
    numbers = [(side.wrong, side.number) for side in sides]
    wrong, corrected = ({n for kind, n in numbers if kind is which} for which in (True, False))
    # If a reply counts the sides from first to last, no number is on both sides.
    numbered = None not in wrong | corrected and bool(wrong & corrected)
    if numbered and len(set(numbers)) == len(numbers):
        texts = {(side.wrong, side.number): side.text for side in sides}
        for number in dict.fromkeys(side.number for side in sides):
            yield texts.get((True, number), ""), texts.get((False, number), "")
        return
    waiting: str | None = None
    for side in sides:
        if side.wrong:
            if waiting is not None:
                yield waiting, ""
            waiting = side.text
        else:
            yield waiting or "", side.text
            waiting = None
    if waiting is not None:
        yield waiting, ""


def normalized_text(text: str) -> str:
    """Return the text without case, punctuation and spacing, to compare texts that say the same.

    Signs such as + and the degree sign stay. So do the vowel signs of other scripts, which `re`
    does not count as letters.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if _tells(c) else " " for c in folded).split())


def _tells(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LMN" or category in ("Sm", "Sc", "So")


# --- Yes or no ------------------------------------------------------------------------------------

_VERDICT = re.compile(r"^ ?(?:statement )?(\d{1,3}) ?\n?(?:statement )?(yes|no)\b", re.I | re.M)


def parse_agreement(reply: str, n: int) -> tuple[bool | None, ...]:
    """Return, for each of `n` numbered statements, whether the reply says yes.

    The value is None for a statement that the reply says nothing about. If the reply has several
    verdicts on a statement, the last one counts.
    """
    verdicts: dict[int, bool] = {}
    words = re.sub(r"[^\w\n]+|_+", " ", without_delimiters(reply))
    for number, word in _VERDICT.findall(words):
        verdicts[int(number)] = word.lower() == "yes"
    return tuple(verdicts.get(at) for at in range(1, n + 1))
