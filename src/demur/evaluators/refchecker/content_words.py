"""Find the words of a text that tell something, and whether it says too little by itself."""

from __future__ import annotations

import re
from functools import lru_cache

from demur._text import UNSPACED, word_set, words
from demur.evaluators.refchecker.languages import languages, likely

# A text with fewer content words than this cannot be understood without the question.
_LEAST_WORDS = 3
_LEAST_WORDS_OF_A_SENTENCE = 2
_LEAST_OF_SIGNS = 2.5
# A whole answer of so many words is seldom a sentence, unless it has a verb or a pronoun of a list:
# "Blue Heron Air".
_MOST_OF_AN_ANSWER = 3
_BEGINNING = 6
_SIGNS_A_WORD, _HANGUL_A_WORD = 2, 3
_DIGITS = re.compile(r"\d+(?:[.,:/-]\d+)*")


def too_short(text: str, is_answer: bool = False) -> bool:
    """Return whether a text says too little to be checked by itself: "No.", "11 years", "1911".

    Words that only hold a sentence together do not count. In a script whose characters are words,
    two characters count as one word; in Korean, three.

    Args:
        text: The text.
        is_answer: Whether it is a whole answer to a question.
    """
    text = _DIGITS.sub("0", text)
    tokens = [word for word, _, _ in words(text)]
    signs = [word for word in tokens if UNSPACED.fullmatch(word)]
    hangul = sum("\uac00" <= sign <= "\ud7a3" for sign in signs)
    others = len(tokens) - len(signs)
    of_signs = hangul / _HANGUL_A_WORD + (len(signs) - hangul) / _SIGNS_A_WORD
    is_few = is_answer and others + of_signs <= _MOST_OF_AN_ANSWER
    others -= sum(word in _function_words(text) for word in tokens if word not in signs)
    total = others + of_signs
    if signs:
        return is_few or total < _LEAST_OF_SIGNS
    clausal = any(
        not (one.words("words.verbs") | one.words("words.pronouns")).isdisjoint(tokens)
        for one in likely(text)
    )
    return total < _LEAST_WORDS_OF_A_SENTENCE if clausal else is_few or total < _LEAST_WORDS


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text, case-folded.

    Words that only hold sentences together are left out, and so are single Latin letters, such as
    the "s" of "town's".
    """
    return frozenset(
        word
        for word in word_set(text) - _function_words(text)
        if len(word) > 1 or not word.isascii() or word.isdigit()
    )


def beginnings(text: str) -> frozenset[str]:
    """Return the first letters of each content word, so that "opened" and "opening" are alike."""
    return frozenset(word[:_BEGINNING] for word in content_words(text))


def is_number(word: str) -> bool:
    """Return whether a word has a digit, or is a number in words."""
    return any(map(str.isdigit, word)) or any(
        word in language.words("words.numbers") for language in languages()
    )


@lru_cache(maxsize=1024)
def _function_words(text: str) -> frozenset[str]:
    """Return the function words of a text's language; of several, those that all of them have."""
    each = [language.words("words.function") for language in likely(text)]
    return frozenset.intersection(*each) if each else frozenset()
