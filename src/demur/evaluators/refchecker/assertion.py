"""Decide whether a sentence states anything, by its own form and without a model.

A sentence that no rule recognises counts as a statement and is checked. So a gap in the rules costs
a check, and lets nothing pass. What the rules know of each language is in `languages`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from demur._text import UNSPACED, WORD_SIGNS, words
from demur.evaluators.refchecker.content_words import beginnings
from demur.evaluators.refchecker.languages import (
    CONTRAST,
    NOTHING,
    Language,
    likely,
    nearest,
    plain,
    possible,
)

# A longer sentence or clause counts as a statement.
_LONGEST = 400
_LONGEST_MARKER = 60
_MOST_TAG_WORDS = 3
_MOST_TAG_SIGNS = 5

_POLITE = (
    *("nothing.greetings", "nothing.thanks", "nothing.courtesies", "nothing.offers"),
    "answer.affirmation",
)

# What states nothing as the whole answer to a question, of several words and of one or two.
_OF_A_LONG_ANSWER = tuple(x for x in NOTHING if x not in ("nothing.offers", "nothing.sources"))
_OF_AN_ANSWER = tuple(x for x in _OF_A_LONG_ANSWER if x != "nothing.courtesies")
_BRIEF = 2

_QUESTION_MARKS = "?\uff1f\u061f"
_CLAUSES = re.compile(
    r"[,;:()\u2014\u2013\uff0c\u3001\uff1b\uff1a\u060c\u061b\u3002\u2026!.\uff01\u0964]+|\s-+\s|\n"
    r"|(?<=\s)(?=[\u00bf\u00a1])"
)
_COMMA = re.compile(r"[,\uff0c\u3001\u060c]")
# The signs around the words of a clause, such as quotes, a question mark and emoji.
_AROUND = re.compile(rf"\A[^{WORD_SIGNS}]+|[^{WORD_SIGNS}]+\Z")
# How an announcement of a list or an answer goes on: "Here is what I found:"
_ANNOUNCED = re.compile(r"\b[^.!?:\d]{0,60}:")
# Markers of having no answer that are the same in all languages.
_MARKERS = re.compile(r"n/a|n\.a")
_HIRAGANA = re.compile(r"[\u3040-\u309f]")  # its signs are particles and endings
_NULL = ("null", "NULL")  # not "Null.", which is zero in German
_SHRUG = "(\u30c4)"
# Signs for sources, and names of files.
_SOURCES = re.compile(
    r"\s*:?(?:\s*,?\s*(?:\[\^?\d{1,3}\]|https?://\S+|\S+\.(?:pdf|html?|md|txt|docx?)))+"
)


@lru_cache(maxsize=1024)
def states_nothing(sentence: str, question: str = "", is_answer: bool = False) -> bool:
    """Return whether a sentence states nothing that could be checked.

    Such a sentence is a question, a greeting, thanks, a refusal or first-person ignorance, or it
    says that the sources are silent. None of its clauses may say anything else ("..., but it opened
    in 1911"). A text without a letter or a digit states nothing either. A sentence in a language
    that has no file in `languages` is never one of these. An affirmation ("Certainly.") states
    nothing by itself; see `affirms`.

    Args:
        sentence: One sentence, or a text in its place such as an item of a list or a value.
        question: The question, which tells the language of a short sentence: "Of granite" is
            ignorance in Dutch. Empty if there is none.
        is_answer: Whether the sentence is the whole answer to the question. Then an offer or a
            source states something ("In the manual."), and so do a courtesy and a word of contrast
            of one word or two ("Any time.", "Solo").
    """
    if not any(map(str.isalnum, sentence)):
        return True
    if len(sentence) > _LONGEST:
        return False
    text = plain(sentence)
    if _announces(text) or _points(text.strip("() ")):
        return True
    if text.endswith(tuple(_QUESTION_MARKS)):
        return _asks(text)
    lists = NOTHING
    if is_answer and len(_clauses(text)) == 1:
        lists = _OF_AN_ANSWER if _is_brief(text) else _OF_A_LONG_ANSWER
    return _all_nothing(text, plain(f"{question} {sentence}"), lists)


def is_polite(sentence: str) -> bool:
    """Return whether a sentence is a greeting, thanks, an offer or an affirmation, or several."""
    return all(
        any(
            language.says_nothing(language.rewritten(_bare(clause)), *_POLITE)
            for language in nearest(clause)
        )
        for clause in _clauses(plain(sentence))
    )


def affirms(sentence: str) -> bool:
    """Return whether a sentence states nothing by itself, and says yes: "Certainly, madam!".

    It states something only if it answers a question. A plain "Yes." always states something.
    """
    return states_nothing(sentence) and any(
        language.says_nothing(part, "answer.affirmation")
        for clause in map(_bare, _clauses(plain(sentence)))
        for language in nearest(clause)
        for part in (clause, *dict(_between_contrasts(language, language.rewritten(clause))))
    )


def is_marker(answer: str, question: str, sources: Iterable[str]) -> bool | None:
    """Return whether a whole answer is nothing but a marker of having none: "N/A", "NOT_FOUND".

    "Unknown" and the like may be what is asked for. They are markers only if the question asks for
    a person, a place, a time or another fact, has none of their words, and no source has them all.
    The result is None for an answer that is in other words.

    Args:
        answer: The answer, without the braces of JSON and the fences of code.
        question: The question; empty if there is none.
        sources: The texts that the answer is checked against.
    """
    if len(answer) > _LONGEST_MARKER:
        return None
    text, asked = _bare(plain(answer)), plain(question)
    if _MARKERS.fullmatch(text) or not any(map(str.isalnum, answer.replace(_SHRUG, ""))):
        return True
    if answer.strip("`\"'.") not in _NULL and not any(
        one.pattern("answer.marker").fullmatch(one.rewritten(text)) for one in possible(text)
    ):
        return None
    return (
        _asks_openly(asked, "question.fact")
        and not any(not _HIRAGANA.match(one) for one in beginnings(text) & beginnings(asked))
        and not any(text in plain(source) for source in sources)
    )


def asks_openly(question: str) -> bool:
    """Return whether a question is no yes-or-no question: "Who founded it?".

    Only a question of one clause counts: "What if I cancel, is it free?" may be both.
    """
    return _asks_openly(plain(question), "question.open")


def _asks_openly(question: str, kind: str) -> bool:
    question = _bare(_behind(is_polite, question))
    read = [(language, language.rewritten(question)) for language in likely(question)]
    return len(_clauses(question)) == 1 and any(
        language.pattern(kind, whole_words=True).match(text) and not _contrasts(language, text)
        for language, text in read
    )


@lru_cache(maxsize=1024)
def only_asks(sentence: str) -> bool:
    """Return whether a sentence asks something and states nothing besides.

    A sentence without a mark at its end, as in a chat, is read as if it had a question mark: "how
    tall is it". A label before a colon is not a question: "When: at noon".
    """
    if len(sentence) > _LONGEST:
        return False
    text = plain(sentence)
    for language in possible(text):
        linked = language.pattern("question.linked", whole_words=True)
        while (match := linked.match(text)) is not None:
            text = text[match.end() :].lstrip(" ,")
    if not text:
        return False
    unmarked = text[-1].isalnum() and ":" not in text
    return (unmarked or text.endswith(tuple(_QUESTION_MARKS))) and _asks(text)


@lru_cache(maxsize=1024)  # a stream asks about the same instructions for each sentence
def tells_fact(sentence: str) -> bool:
    """Return whether a sentence of a system message tells something, and orders nothing."""
    text = _bare(plain(sentence))
    language, *others = likely(text) or (None,)
    return (
        language is not None
        and not others
        and len(text) <= _LONGEST
        and language.pattern("system.facts").fullmatch(language.rewritten(text)) is not None
    )


def stated_from(sentence: str) -> int:
    """Return the offset at which a sentence's statement begins, after clauses that state nothing.

    In "I do not know who built it, but it opened in 1911" it is the offset of "it opened". It is 0
    if the first clause states something, or none does.
    """
    if len(sentence) > _LONGEST or states_nothing(sentence):
        return 0
    begin = 0
    lowered = sentence.lower()
    if len(lowered) != len(sentence):  # then offsets in one are not valid in the other
        return 0
    ends = [match for one in nearest(lowered) for match in _contrasts(one, lowered)]
    for match in sorted([*ends, *_CLAUSES.finditer(lowered)], key=re.Match.start):
        before = sentence[: match.start()]
        if any(map(str.isalnum, before)):
            if not states_nothing(before):
                break
            begin = match.end()
    rest = sentence[begin:]
    # The sentence may state something only as a whole: "Who but a fool does not know it?"
    return 0 if states_nothing(rest) else begin + len(rest) - len(rest.lstrip())


def denies(text: str) -> bool:
    """Return whether a text has a word that turns a statement into its opposite."""
    text = plain(text)
    return any(
        language.pattern("words.denial", whole_words=True).search(text)
        for language in possible(text)
    )


def denies_behind_contrast(text: str) -> bool:
    """Return whether a text has a word that denies, and "but" or the like before it."""
    return any(
        denies(match.string[match.end() :])
        for one in nearest(text)
        for match in _contrasts(one, one.rewritten(text))
        if not one.pattern("contrast.joining").fullmatch(match.group())
    )


def _bare(clause: str) -> str:
    return _AROUND.sub("", clause)


def _announces(text: str) -> bool:
    found = (one.pattern("answer.announcement").match(text) for one in possible(text))
    return any(match and _ANNOUNCED.fullmatch(text, match.end()) for match in found)


def _points(text: str) -> bool:
    found = (one.pattern("answer.pointer").match(text) for one in possible(text))
    return any(match and _SOURCES.fullmatch(text, match.end()) for match in found)


def _asks(text: str) -> bool:
    """Return whether a sentence with a question mark only asks.

    A statement may have a question mark too: "It is in Lund, isn't it?", "Did you know that it is
    in Lund?", "It is free, how can I help you?"
    """
    begun, said = _behind(_nothing, text), _behind(is_polite, text)
    parts = _COMMA.split(begun.rstrip(_QUESTION_MARKS + " "))
    tag = parts[-1].strip()
    few = len(tag.split()) <= _MOST_TAG_WORDS if " " in text else len(tag) <= _MOST_TAG_SIGNS
    if len(parts) > 1 and few and not _nothing(tag):
        return False
    return any(
        _asks_in(language, begun)
        and language.pattern("question.states").search(language.rewritten(said)) is None
        for language in likely(text)
    )


def _asks_in(language: Language, text: str) -> bool:
    """Return whether a text asks in its first clause, and in what stands before each contrast."""
    text = language.rewritten(text)
    asks, goes_on = language.pattern("question.asks"), language.pattern("question.goes_on")
    return all(asks.search(one) for one in (text, *_clauses(text)[:1])) and all(
        _nothing(before := text[: match.start()])
        or (goes_on.fullmatch(match.group()) and asks.search(before))
        for match in _contrasts(language, text)
    )


def _behind(fillers: Callable[[str], bool], text: str) -> str:
    """Return the text behind clauses that are fillers: "Hello! Which one do you mean?"."""
    rest = text
    for match in _CLAUSES.finditer(text):
        if not fillers(text[: match.start()].rpartition(",")[2]):
            break
        rest = text[match.end() :].strip()
    return rest or text


def _is_brief(text: str) -> bool:
    """Return whether a text has one word or two; of a script without spaces, up to four signs."""
    tokens = [word for word, _, _ in words(text)]
    return sum(1 / 2 if UNSPACED.fullmatch(token) else 1 for token in tokens) <= _BRIEF


def _all_nothing(text: str, around: str, lists: Sequence[str]) -> bool:
    """Return whether all clauses of a plain sentence state nothing; `around` tells the language.

    A clause may stand amid another: "This, I am afraid, is not mentioned".
    """
    clauses = _clauses(text)
    found = [_nothing(clause, at > 0, around, lists) for at, clause in enumerate(clauses)]
    for at in range(1, len(clauses) - 1):
        if found[at] and not found[at - 1] and not found[at + 1]:
            outer = f"{clauses[at - 1].strip()} {clauses[at + 1].strip()}"
            found[at - 1] = found[at + 1] = _nothing(outer, at > 1, around, lists)
    return all(found)


def _clauses(text: str) -> list[str]:
    """Return the clauses between marks; one without a letter or a digit is none."""
    return [clause for clause in _CLAUSES.split(text) if any(map(str.isalnum, clause))]


@lru_cache(maxsize=1024)
def _nothing(
    clause: str, behind: bool = False, sentence: str = "", lists: Sequence[str] = NOTHING
) -> bool:
    """Return whether a clause between marks states nothing in its language.

    Args:
        clause: The clause.
        behind: Whether it follows a clause that states nothing, and may continue it.
        sentence: The text around it, which tells the language of a short clause.
        lists: The lists of clauses that state nothing.
    """
    if not any(map(str.isalnum, clause)):
        return True
    languages = nearest(clause)
    among = [language for language in languages if language in nearest(sentence)]
    if not among and lists is not _OF_AN_ANSWER:
        among = [*languages]
    return any(_nothing_in(language, clause, behind, lists) for language in among)


def _nothing_in(language: Language, text: str, behind: bool, lists: Sequence[str]) -> bool:
    text = language.rewritten(text)
    if any(text.strip() in other.words("words.denial") for other in possible(text)):
        return False  # A word may be a filler in this language, and "no" in another.
    parts = [*_between_contrasts(language, text)]
    for clause, joined in parts:
        prefix = language.pattern("answer.prefix", whole_words=True).match(clause)
        behind_prefix = clause[prefix.end() :].strip() if prefix else ""
        if any(language.says_nothing(one, *lists) for one in (clause, behind_prefix) if one):
            behind = True
        elif not behind or not (
            language.pattern("nothing.continued").fullmatch(clause)
            or (joined and language.pattern("nothing.joined").fullmatch(clause))
        ):
            return False
    return bool(parts) or lists is NOTHING


def _between_contrasts(language: Language, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the clauses between words of contrast, each with whether "and" stands before it."""
    at, joined = 0, False
    joining = language.pattern("contrast.joining")
    for match in _contrasts(language, text):
        if match.start() < at:
            continue
        if clause := _bare(text[at : match.start()]):
            yield clause, joined
        joined = joining.fullmatch(match.group()) is not None
        at = match.end()
    if clause := _bare(text[at:]):
        yield clause, joined


def _contrasts(language: Language, text: str) -> list[re.Match[str]]:
    """Return the words of contrast in a text of a language, in order.

    Those of other languages that are no words of this one count too: two related languages may
    share the clause before the word.
    """
    patterns = [language.pattern(*CONTRAST, whole_words=True)]
    patterns += [
        other.pattern("contrast.always", whole_words=True)
        for other in possible(text)
        if other is not language
    ]
    return sorted((m for one in patterns for m in one.finditer(text)), key=re.Match.start)
