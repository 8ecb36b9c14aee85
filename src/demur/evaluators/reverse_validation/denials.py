"""Recognise words that deny a name, and words that stand in place of any name; in English only.

Texts are in the plain letters of `names.plain`, where "isn't" is "isnt".
"""

from __future__ import annotations

import re

from demur.evaluators.reverse_validation.names import ARTICLES, TITLES, plain, words_of

# How many characters before a name a denial of it may begin.
_WINDOW = 60
_GAP = r"(?:[^\S\n]|[-\u2010\u2011\u2013*_\"\u201c\u201d])"
_SMALL = "|".join(sorted(ARTICLES | TITLES | {"be", "called", "named"}))
_BEFORE = re.compile(
    r"(?<![^\W_])(?:not|isnt|wasnt|arent|cannot|cant|never|neither|nor|except|unlike"
    rf"|(?:rather|other){_GAP}than|instead{_GAP}of|except{_GAP}for|ruled{_GAP}out)"
    rf"{_GAP}{{1,9}}(?:(?:{_SMALL})\.?{_GAP}{{1,9}}){{0,4}}\Z",
    re.I,
)
_DOES = r"(?:is|was|are|were|does|do|did|can|could|would)"
_NOT = rf"(?:{_DOES}\s(?:\w+ly\s)?(?:not|never)|{_DOES}nt|cannot|cant)"
_FAILS = "|".join(
    [
        # The clause may end there: "Skye meets all; Hoy does not."
        rf"{_NOT}[^\S\n]?(?:[.,;!?)\n]|\Z)",
        rf"{_NOT}\s(?:\w+ly\s)?(?:meet|match|satisfy|fit|fulfil|qualify|correspond|be\b)",
        rf"{_NOT}\s(?:it|correct|right|(?:an?|the)\s(?:\w+\s){{0,2}}(?:entity|answer|one|match))\b",
        r"fail(?:s|ed)?\b",
        r"meets?\snone\b",
        r"(?:is|was|are|were|(?:can|could|must)\sbe)\s(?:\w+ly\s)?"
        r"(?:ruled\sout|excluded|eliminated|wrong|incorrect|no\smatch)\b",
    ]
)
_BEHIND = re.compile(
    rf"{_GAP}{{0,9}}(?:\([^()\n]{{0,60}}\){_GAP}{{0,9}})?"
    r"(?:,?\s?\b(?:but|yet|which|who|that)\s)?(?:(?:it|he|she|they|this|that)\s)?"
    rf"(?:{_FAILS})",
    re.I,
)
_NO_NAME = re.compile(
    r"(?:(?:the )?(?:answer|entity|name|it|this)(?: is)? )?"
    r"(?:unknown|not known|none|n a|unclear|not sure|no (?:idea|answer|entity|name|match)"
    r"|(?:i )?(?:do not|dont|cannot|cant) (?:know|tell|say)|(?:i am|im) (?:not sure|unsure))"
)


def denied(text: str, start: int, end: int) -> bool:
    """Return whether the words around a name deny it.

    They can be directly before it ("not Hoy", "it cannot be Hoy", "rather than Hoy"), or after it
    or a pronoun in the same clause ("Hoy does not meet all", "Hoy, but it fails").

    Args:
        text: The text in plain letters.
        start: The offset at which the name begins.
        end: The offset at which the name ends.
    """
    before = text[max(0, start - _WINDOW) : start]
    return bool(_BEFORE.search(before) or _BEHIND.match(text, end))


def names_nobody(text: str) -> bool:
    """Return whether the first sentence of a text says that no name is known.

    "Unknown." and "I don't know." say so, whatever the entity is called. "The Unknown" does not.
    """
    first = re.split(r"[.!;\n]", plain(text.strip()), maxsplit=1)[0]
    return bool(_NO_NAME.fullmatch(" ".join(word.folded for word in words_of(first))))
