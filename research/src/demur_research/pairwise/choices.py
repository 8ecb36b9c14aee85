"""Read the letter that a judge of two answers chose.

No model is called, and the network is not used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from demur.runtime.prompting import without_delimiters, without_echo

Choice = Literal["A", "B", "C"]
"""A: the answer shown first, B: the answer shown second, C: not sure."""

_LABEL = r"(?:answer|option|choice|response|assistant|letter|verdict)"
_ALONE = re.compile(rf"[\W_]*(?:{_LABEL}[\W_]+)?([abc])[\W_]*", re.I)
# The letter is a word of its own, unlike the "A" of "A's", of "vitamin-A" and of "U.S.A.".
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
"""The number of characters on either side of a letter that show its meaning."""


def parse_choice(reply: str, shown: Sequence[str] = ()) -> Choice | None:
    """Return the letter that a reply chooses (A, B, or C for not sure), or None.

    A letter counts if it begins a sentence and is set off from it, or if the reply says that it is
    the choice ("**B**.", "Answer: A", "I choose B", "A is better"). Words such as "not sure" count
    as C. The result is None if there is no such letter, if letters differ, or if a letter is
    elsewhere, such as after "not". An "A" before a small letter may be the article and does not
    count. Text that the reply copies from the texts that were `shown` does not count either.
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
