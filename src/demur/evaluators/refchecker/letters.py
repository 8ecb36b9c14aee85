"""Tell whether a claim and a text are written in different letters, as in Arabic about English.

demur's own judges let far more wrong claims pass there (decision 64), so they are not asked.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from demur._text import script_of, words

# Languages mix these in one sentence.
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}
# A text is in these letters too if they have this share of its words.
_SHARE_OF_TEXT = 1 / 3
# One foreign word, such as a unit of measurement, makes no claim foreign.
_LEAST_WORDS = 2


def other_letters(claim: str, text: str) -> tuple[str, str] | None:
    """Return the letters of a claim and of a text if these differ, as Unicode names them.

    They do not differ if the text has each word of the claim, or is in both kinds of letters.
    """
    if claim.isascii() and text.isascii():
        return None
    own, others = _of_words(claim), _counts(text)
    counts = Counter(own.values())
    if not counts or not others:
        return None
    main = max(counts, key=lambda script: counts[script])
    unread = [
        word for word, script in own.items() if script == main and word not in _of_words(text)
    ]
    if len(unread) < _LEAST_WORDS or others[main] >= _SHARE_OF_TEXT * others.total():
        return None
    return main.capitalize(), others.most_common(1)[0][0].capitalize()


@lru_cache(maxsize=256)  # the claims of an answer are held against the same texts
def _of_words(text: str) -> dict[str, str]:
    """Return the script of each different word of a text that begins with a letter."""
    return {word: _script(word[0]) for word, _, _ in words(text) if word[0].isalpha()}


@lru_cache(maxsize=256)
def _counts(text: str) -> Counter[str]:
    return Counter(_of_words(text).values())


def _script(letter: str) -> str:
    name = script_of(letter)
    return _TOGETHER.get(name, name)
