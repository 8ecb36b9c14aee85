"""Ask demur's own judges about no claim and text in different letters, as in Arabic about English.

They let far more wrong claims pass there (decision 64).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from demur._text import script_of, words
from demur.evaluators.refchecker.checking import Checker, Findings, Group, WindowFinding
from demur.evaluators.refchecker.references import window_text
from demur.runtime import Steps

# Languages mix these in one sentence.
_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}
# A text is in these letters too if they have this share of its words.
_SHARE_OF_TEXT = 1 / 3
# One foreign word, such as a unit of measurement, makes no claim foreign.
_LEAST_WORDS = 2
_OTHER_LETTERS = (
    "the claim is in {} letters, and the text in {} ones: demur's own judges let too many wrong "
    "claims pass there. Retrieve texts in the language of the answer, or choose another judge."
)


def in_same_letters(check: Checker) -> Checker:
    """Return a checker that does not ask about a claim and a window in different letters.

    The claim has no label there, and the error says what to do.
    """

    def check_all(groups: Sequence[Group], question: str | None) -> Steps[list[Findings]]:
        unread = {
            (group, row, column): WindowFinding(error=_OTHER_LETTERS.format(*letters))
            for group, (claims, windows) in enumerate(groups)
            for row, window in enumerate(windows)
            for column, claim in enumerate(claims)
            if (letters := other_letters(claim.alone, window_text(window)))
        }
        if not unread:
            return (yield from check(groups, question))
        # One group for each window, of the claims in its letters.
        asked = {
            (group, row): of
            for group, (claims, windows) in enumerate(groups)
            for row in range(len(windows))
            if (of := [at for at in range(len(claims)) if (group, row, at) not in unread])
        }
        parts = [
            ([groups[group][0][at] for at in of], [groups[group][1][row]])
            for (group, row), of in asked.items()
        ]
        found = dict(unread)
        answers = yield from check(parts, question)
        for ((group, row), of), (findings,) in zip(asked.items(), answers, strict=True):
            found |= {(group, row, at): one for at, one in zip(of, findings, strict=True)}
        return [
            [[found[group, row, at] for at in range(len(claims))] for row in range(len(windows))]
            for group, (claims, windows) in enumerate(groups)
        ]

    return check_all


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
