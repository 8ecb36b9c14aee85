"""What a judge of two answers wrote -> the letter that it chose. No model, no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from demur.prompting import without_delimiters, without_echo

Choice = Literal["A", "B", "C"]
"""The answer shown first, the one shown second, or not sure."""

_LABEL = r"(?:answer|option|choice|response|assistant|letter|verdict)"
_ALONE = re.compile(rf"[\W_]*(?:{_LABEL}[\W_]+)?([abc])[\W_]*", re.I)
# Standing by itself, unlike the "A" of "A's", of "vitamin-A" and of "U.S.A.".
_LETTER = re.compile(
    r"(?<![^\W_])(?<![^\W_][.'\u2019-])(?P<letter>[ABC])(?![^\W_])(?!['\u2019-][^\W_])"
)
_UNSURE = re.compile(r"(?:\bnot|n['\u2019]t)\s+(?:\w+\s+)?sure\b|\bunsure\b|\buncertain\b", re.I)
_OPENING, _CLOSING = r"[\s*_:\"'`({\[\u201c\u2018>#=-]*", r"[*_\"'`)}\]\u201d\u2019]"
_BEGINS = re.compile(_OPENING)
_LED = re.compile(
    rf"\b(?:{_LABEL}|answers|options|choices|choose|pick|select|prefer|is|with|for){_OPENING}$",
    re.I,
)
_ENDS = re.compile(
    rf"{_CLOSING}*(?:$|[.,:;!?)](?!\w)|\s*[\u2010-\u2015-]\s)|{_CLOSING}+(?!\w)"
    r"|\s+(?:because|as|since|seems|looks|is\s+(?:\w+\s+){0,2}(?:better|best|more))\b"
)
_ARTICLE = re.compile(r" +[a-z]")
_NEGATION = re.compile(r"\b(?:not?|never|neither|nor|cannot)\b|n['\u2019]t\b", re.I)
_SENTENCE = re.compile(r"[.!?;\n]")
_REACH = 120
"""Characters on either side of a letter that tell what it stands for."""


def parse_choice(reply: str, shown: Sequence[str] = ()) -> Choice | None:
    """The letter that a reply chooses: A, B, or C for not sure.

    Read are a letter that begins a sentence and is set off from it, one that is said to be the
    choice ("**B**.", "Answer: A", "I choose B", "A is better"), and words such as "not sure". None
    if there is none of these, or letters that differ, or if the letter stands elsewhere, such as
    behind "not". An "A" before a small letter may be the article, and does not count; nor does
    what the reply copies from the texts that were `shown`.
    """
    text = without_echo(without_delimiters(reply), shown).strip()
    alone = _ALONE.fullmatch(text)
    if alone:
        return _choice(alone[1].upper())
    chosen, mentioned = set[str](), set[str]()
    for match in _LETTER.finditer(text):
        before = text[max(0, match.start() - _REACH) : match.start()]
        behind = text[match.end() : match.end() + _REACH].partition("\n")[0]
        sentence = _SENTENCE.split(before)[-1]
        set_off = _ENDS.match(behind) is not None
        begins = set_off and _BEGINS.fullmatch(sentence.rpartition(":")[2])
        if (begins or _LED.search(before)) and not _NEGATION.search(sentence):
            chosen.add(match["letter"])
        elif set_off or match["letter"] != "A" or not _ARTICLE.match(behind):
            mentioned.add(match["letter"])
    if _UNSURE.search(text):
        chosen.add("C")
    return _choice(chosen.pop()) if len(chosen) == 1 and mentioned <= chosen else None


def _choice(letter: str) -> Choice:
    return "A" if letter == "A" else "B" if letter == "B" else "C"
