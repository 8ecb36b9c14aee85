"""Decide whether a sentence states anything, by its own form and without a model.

A sentence that no rule recognises counts as a statement and is checked. So a gap in the rules costs
a check, and lets nothing pass.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from demur._text import word_set, words
from demur.evaluators.refchecker.phrases import APOLOGY, LANGUAGES
from demur.evaluators.refchecker.word_lists import CLAUSAL, FUNCTION_WORDS, VERBS

# A longer sentence or clause counts as a statement.
_LONGEST = 400
# A text with fewer content words than this cannot be understood without the question.
_LEAST_WORDS = 3
_LEAST_WORDS_OF_A_SENTENCE = 2
_LEAST_OF_SIGNS = 2.5
_SIGNS_A_WORD, _HANGUL_A_WORD = 2, 3
_MOST_TAG_WORDS = 3
_MOST_TAG_SIGNS = 5

_QUESTION_MARKS = "?\uff1f\u061f"
_DIGITS = re.compile(r"\d+(?:[.,:/-]\d+)*")
_CLAUSES = re.compile(
    r"[,;:()\u2014\u2013\uff0c\u3001\uff1b\uff1a\u060c\u061b\u3002\u2026!.\uff01\u0964]+|\s-+\s|\n"
)
_COMMA = re.compile(r"[,\uff0c\u3001\u060c]")
_MARKUP = re.compile(r"[*_#>`~\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]+")
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u065f\u0670]")
_CONTRACTIONS = (
    (re.compile(r"[\u2019\u02bc`]"), "'"),
    (re.compile(r"\bcan't\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"\b(i|we|you)'d\b"), r"\1 would"),
    (re.compile(r"\b(it|that|there|here|what)'s\b"), r"\1 is"),
    (re.compile("[\u0623\u0625\u0622]"), "\u0627"),  # alef with a hamza, as most people write it
)
# An announcement of a list or an answer: "Here is what I found:"
_LEAD_IN = re.compile(
    r"(?:here|below|the following|based on|according to|in short|in summary|summary|answer|"
    r"sources?|references?|hier|zusammenfassung|antwort|quellen?)\b[^.!?:\d]{0,60}:"
)
# A pointer to the sources, with no word of its own but a file's name.
_POINTER = re.compile(
    r"(?:sources?|references?|see|cf\.?|quellen?|siehe|vgl\.?|来源|参考|出典|출처|المصدر|स्रोत)\s*:?"
    r"(?:\s*,?\s*(?:\[\^?\d{1,3}\]|https?://\S+|\S+\.(?:pdf|html?|md|txt|docx?)))+"
)
# A few words without a verb behind "and", as in "the height and the weight".
_PHRASE = re.compile(
    r"(?:(?:the|a|an|its|their|his|her|my|any|other) )?[^\W\d]+(?: [^\W\d]+)?"
    r"(?: (?:in|from|of|within|on) (?:[^\W\d]+ ?){1,4})?"
)
# These words continue the same question: "Which one, and when?".
_HARMLESS_IN_QUESTIONS = frozenset(
    ("and", "so", "while", "more than", "rather", "yet", "still", "instead", "und", "da")
)
# Words that link a question to the sentence before it: "And how tall is it?"
_LINKED = re.compile(r"\A(?:(?:and|but|so|or|then|also|now|well|okay|ok|und|aber|oder)\b[\s,]*)+")
_VERBAL = re.compile(r"\w{2,}ed\b")
_EMBEDDED = re.compile(
    r"(?:wer|was|wann|wo|wie|ob|welche[rsnm]?|warum|woher|wohin|dass|wem|wen)\b\D*"
)


@lru_cache(maxsize=1024)
def states_nothing(sentence: str) -> bool:
    """Return whether a sentence states nothing that could be checked.

    Such a sentence is a question, a greeting, thanks, a refusal or first-person ignorance, or it
    says that the sources are silent. None of its clauses may say anything else ("..., but it opened
    in 1911"). A text without a letter or a digit states nothing either. The rules know English,
    German, Chinese, Japanese, Korean, Arabic and Hindi.

    Args:
        sentence: One sentence, or a text in its place such as an item of a list or a value.
    """
    if not any(map(str.isalnum, sentence)):
        return True
    if len(sentence) > _LONGEST:
        return False
    plain = _plain(sentence)
    if _LEAD_IN.fullmatch(plain) or _POINTER.fullmatch(plain.strip("() ")):
        return True
    if plain.endswith(tuple(_QUESTION_MARKS)):
        return _asks(plain)
    return _all_nothing(plain)


@lru_cache(maxsize=1024)
def only_asks(sentence: str) -> bool:
    """Return whether a sentence asks something and states nothing besides.

    A sentence without a mark at its end, as in a chat, is read as if it had a question mark: "how
    tall is it". A label before a colon is not a question: "When: at noon".
    """
    plain = _LINKED.sub("", _plain(sentence))
    if not plain or len(sentence) > _LONGEST:
        return False
    unmarked = plain[-1].isalnum() and ":" not in plain
    return (unmarked or plain.endswith(tuple(_QUESTION_MARKS))) and _asks(plain)


def stated_from(sentence: str) -> int:
    """Return the offset at which a sentence's statement begins, after clauses that state nothing.

    In "I do not know who built it, but it opened in 1911" it is the offset of "it opened". It is 0
    if the first clause states something.
    """
    if len(sentence) > _LONGEST:
        return 0
    begin = 0
    ends = [_CLAUSES, *(language.contrast for language in LANGUAGES)]
    lowered = sentence.lower()
    if len(lowered) != len(sentence):  # then offsets in one are not valid in the other
        return 0
    for match in sorted((m for end in ends for m in end.finditer(lowered)), key=re.Match.start):
        before = sentence[: match.start()]
        if any(map(str.isalnum, before)):
            if not states_nothing(before):
                break
            begin = match.end()
    rest = sentence[begin:]
    return begin + len(rest) - len(rest.lstrip()) if any(map(str.isalnum, rest)) else 0


def too_short(text: str) -> bool:
    """Return whether a text says too little to be checked by itself: "No.", "11 years", "1911".

    Words that only hold a sentence together do not count. In a script whose characters are words,
    two characters count as one word; in Korean, three.
    """
    tokens = [word for word, _, _ in words(_DIGITS.sub("0", text))]
    signs = [word for word in tokens if len(word) == 1 and word.isalpha() and not word.isascii()]
    hangul = sum("\uac00" <= sign <= "\ud7a3" for sign in signs)
    plain = sum(word not in FUNCTION_WORDS for word in tokens) - len(signs)
    total = plain + hangul / _HANGUL_A_WORD + (len(signs) - hangul) / _SIGNS_A_WORD
    if signs:
        return total < _LEAST_OF_SIGNS
    return total < (_LEAST_WORDS_OF_A_SENTENCE if not CLAUSAL.isdisjoint(tokens) else _LEAST_WORDS)


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text, case-folded.

    Words that only hold sentences together are left out, and so are single Latin letters, such as
    the "s" of "town's".
    """
    tokens = word_set(text) - FUNCTION_WORDS
    return frozenset(
        word for word in tokens if len(word) > 1 or not word.isascii() or word.isdigit()
    )


def _plain(sentence: str) -> str:
    """Return the sentence in lower case, without markup and contractions."""
    text = unicodedata.normalize("NFKC", sentence).casefold()
    text = _ARABIC_MARKS.sub("", text)
    for pattern, instead in _CONTRACTIONS:
        text = pattern.sub(instead, text)
    return " ".join(_MARKUP.sub(" ", text).split())


def _asks(plain: str) -> bool:
    """Return whether a sentence with a question mark only asks.

    A statement may have a question mark too: "It is in Lund, isn't it?", "Did you know that it is
    in Lund?"
    """
    parts = _COMMA.split(plain.rstrip(_QUESTION_MARKS + " "))
    tag = parts[-1].strip()
    few = len(tag.split()) <= _MOST_TAG_WORDS if " " in plain else len(tag) <= _MOST_TAG_SIGNS
    if len(parts) > 1 and few and not _nothing(tag):
        return False
    begun = _after_fillers(plain)
    return any(language.question.search(begun) for language in LANGUAGES) and not any(
        match.start() > 0 and not _nothing(plain[: match.start()])
        for language in LANGUAGES
        for match in language.contrast.finditer(plain)
        if match.group() not in _HARMLESS_IN_QUESTIONS
    )


def _after_fillers(plain: str) -> str:
    """Return the text after greetings and the like: "Hello! Which one do you mean?"."""
    rest = plain
    for match in _CLAUSES.finditer(plain):
        if not _nothing(plain[: match.start()].rpartition(",")[2]):
            break
        rest = plain[match.end() :].strip()
    return rest or plain


def _all_nothing(plain: str) -> bool:
    """Return whether each clause states nothing."""
    said_nothing = False
    for joined, clause in _clauses(plain):
        if _nothing(clause):
            said_nothing = True
        elif not (said_nothing and (_EMBEDDED.fullmatch(clause) or (joined and _phrase(clause)))):
            return False
    return said_nothing


def _phrase(clause: str) -> bool:
    return (
        _PHRASE.fullmatch(clause) is not None
        and not _VERBAL.search(clause)
        and not VERBS & set(clause.split())
    )


def _nothing(clause: str) -> bool:
    clause = clause.strip(" '" + _QUESTION_MARKS)
    apology = APOLOGY.match(clause)
    read = {clause, clause[apology.end() :]} if apology else {clause}
    return any(not text or lang.nothing.fullmatch(text) for text in read for lang in LANGUAGES)


def _clauses(plain: str) -> Iterator[tuple[bool, str]]:
    """Yield the clauses of a sentence, each with whether "and" stands before it."""
    joined = False
    for part in _CLAUSES.split(plain):
        at = 0
        contrasts = (match for language in LANGUAGES for match in language.contrast.finditer(part))
        for match in sorted(contrasts, key=re.Match.start):
            if match.start() < at:
                continue
            if part[at : match.start()].strip():
                yield joined, part[at : match.start()].strip()
            joined = match.group() in ("and", "und")
            at = match.end()
        if part[at:].strip():
            yield joined, part[at:].strip()
        joined = False
