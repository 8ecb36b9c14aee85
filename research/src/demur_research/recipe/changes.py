"""Change English sentences by rules: one detail, so that it is wrong, or the words alone.

Each rule is a function from a sentence to another one, or to None if the rule does not apply. What
is drawn comes from the generator that a rule is given, so equal seeds give equal sentences.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_OPPOSITES = """\
before after|first last|increase decrease|increased decreased|more less|higher lower|always never
largest smallest|oldest youngest|all some|only not_only|include exclude|includes excludes
including except|north south|northern southern|east west|eastern western|won lost|early late
began ended|open closed|top bottom|left right|above below|true false|father mother|son daughter
brother sister|husband wife|he she|his her|male female|same different|legal illegal|with without
possible impossible|accepted rejected|majority minority|public private|ascending descending
must need_not|can cannot|may must_not|least most|minimum maximum|up down|add remove|read write
input output|leading trailing|greater smaller|many few|often rarely|both neither|common rare
returns raises|optional required|new existing|local remote|allowed forbidden|enabled disabled
positive negative|absolute relative|inside outside|next previous|longest shortest|faster slower"""
_SYNONYMS = """\
approximately about|large big|film movie|began started|located situated|received got
purchased bought|famous well-known|numerous many|several a_number_of|stated said|created made
near close_to|entire whole|shown displayed|delete remove|difficult hard|important significant
primarily mainly|constructed built|wrote authored|children kids"""


def _pairs(listed: str) -> dict[str, list[str]]:
    """Return the words of listed pairs, each with what stands opposite to it."""
    found: dict[str, list[str]] = defaultdict(list)
    for pair in re.split(r"[|\n]", listed):
        one, other = (word.replace("_", " ") for word in pair.split())
        found[one].append(other)
        found[other].append(one)
    return dict(found)


OPPOSITES, SYNONYMS = _pairs(_OPPOSITES), _pairs(_SYNONYMS)
_NUMBER = re.compile(r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w-]|[.,]\d)")
# Not the first word of a sentence, which has a capital whatever it is.
_NAME = re.compile(
    r"(?<!^)(?<![.!?] )\b[A-Z][\w'’-]+(?: (?:(?:of|the|de|von|and) )?[A-Z][\w'’-]+)*"
)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|should|does|do|did|may|must)\b"
    r"(?! not\b|n't)"
)
_NOT = re.compile(rf"{_AUXILIARY.pattern.partition('(?!')[0]} not\b")
_DENIES = re.compile(r"\b(not|never|no|cannot|without|nothing|nobody|none)\b|n't", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")

Change = Callable[[str, str, random.Random], "str | None"]
"""A rule that makes a sentence wrong: from the sentence, the text that it stands in, and a
generator."""
Rewording = Callable[[str], "str | None"]
"""A rule that keeps what a sentence says."""


def names(text: str) -> list[str]:
    """Return the names in a text, each once, in their order."""
    found = (match[0] for match in _NAME.finditer(text))
    return list(dict.fromkeys(name for name in found if name not in (*MONTHS, *DAYS)))


def wrong(sentence: str, context: str, rng: random.Random) -> str | None:
    """Return a sentence with one detail changed, such that its context does not support it.

    Args:
        sentence: A sentence of the context, or a rewording of it.
        context: The text that the changed sentence will be judged by.
        rng: The generator of all choices.

    Returns:
        The changed sentence, which is not in the context. None if no rule applies.
    """
    for change in rng.sample(_CHANGES, len(_CHANGES)):
        changed = change(sentence, context, rng)
        if changed is not None and changed != sentence and changed not in context:
            return changed
    return None


def reworded(sentence: str, rng: random.Random) -> str:
    """Return a sentence that says the same, or less, in other words if any rule applies."""
    for rule in rng.sample(_REWORDINGS, len(_REWORDINGS)):
        other = rule(sentence) if rng.random() < 0.5 else None
        if other is not None and len(other.split()) >= 4:
            sentence = other
    return sentence


# -- what makes a sentence wrong -------------------------------------------------------------------


def change_number(sentence: str, context: str, rng: random.Random) -> str | None:
    """Replace a number by another number of the context, or by one that is near or a slip."""
    match = _drawn(list(_NUMBER.finditer(sentence)), rng)
    if match is None:
        return None
    said = match[0]
    value = float(said.replace(",", ""))
    others = [one for one in _NUMBER.findall(context) if len(one) == len(said) and one != said]
    if others and rng.random() < 0.5:
        return _replaced(sentence, match, rng.choice(others))
    if "." in said:
        decimals = len(said.partition(".")[2])
        return _replaced(sentence, match, f"{value * rng.choice((0.5, 1.5, 2, 10)):.{decimals}f}")
    is_year = "," not in said and 1500 < value < 2100
    steps = (-20, -10, -3, -2, -1, 1, 2, 3, 10, 20) if is_year else (1, -1, value, 9 * value, 5)
    other = max(0, int(value + rng.choice(steps)))
    return _replaced(sentence, match, f"{other:,}" if "," in said else str(other))


def change_listed_word(sentence: str, context: str, rng: random.Random) -> str | None:
    """Replace a number word, a month or a day of the week by another one."""
    for words in rng.sample((NUMBER_WORDS, MONTHS, DAYS), 3):
        matches = re.finditer(rf"\b(?:{'|'.join(words)})\b", sentence)
        match = _drawn(list(matches), rng)
        if match is not None:
            others = [word for word in words if word != match[0]]
            return _replaced(sentence, match, rng.choice(others))
    return None


def change_name(sentence: str, context: str, rng: random.Random) -> str | None:
    """Replace a name by another name of the context, which is not in the sentence."""
    match = _drawn(list(_NAME.finditer(sentence)), rng)
    others = [name for name in names(context) if name not in sentence]
    if match is None or not others:
        return None
    return _replaced(sentence, match, rng.choice(others))


def swap_names(sentence: str, context: str, rng: random.Random) -> str | None:
    """Let the first and the last name of a sentence change places."""
    found = list(_NAME.finditer(sentence))
    if len(found) < 2 or found[0][0] in found[-1][0] or found[-1][0] in found[0][0]:
        return None
    first, last = found[0], found[-1]
    between = sentence[first.end() : last.start()]
    # Of two names that are only listed, the order says nothing.
    if re.fullmatch(r",? (?:and|or)? ?", between):
        return None
    return f"{sentence[: first.start()]}{last[0]}{between}{first[0]}{sentence[last.end() :]}"


def negate(sentence: str, context: str, rng: random.Random) -> str | None:
    """Put "not" behind the first auxiliary, or take it away."""
    if _NOT.search(sentence):
        return _NOT.sub(r"\1", sentence, count=1)
    match = _AUXILIARY.search(sentence)
    if match is None or _DENIES.search(sentence):  # two denials may well say the same as none
        return None
    return _replaced(sentence, match, "cannot" if match[0] == "can" else f"{match[0]} not")


def oppose(sentence: str, context: str, rng: random.Random) -> str | None:
    """Replace a word by its opposite."""
    match = _drawn([one for one in _WORD.finditer(sentence) if one[0] in OPPOSITES], rng)
    return match and _replaced(sentence, match, rng.choice(OPPOSITES[match[0]]))


_CHANGES: Sequence[Change] = (
    *(change_number, change_listed_word, change_name, swap_names, negate, oppose),
)

# -- what keeps its meaning ------------------------------------------------------------------------


def without_brackets(sentence: str) -> str | None:
    """Leave out what stands in brackets."""
    shorter = re.sub(r" ?\([^()]*\)", "", sentence, count=1)
    return shorter if shorter != sentence else None


def with_lead_last(sentence: str) -> str | None:
    """Move a leading phrase, such as "In 1912, ", to the end."""
    match = re.match(r"((?:In|On|At|During|After|Before|From|Since) [^,]{2,40}), (.+)\.$", sentence)
    if match is None:
        return None
    lead, rest = match[1], match[2]
    return f"{rest[0].upper()}{rest[1:]} {lead[0].lower()}{lead[1:]}."


def first_clause(sentence: str) -> str | None:
    """Leave out a last clause that adds something."""
    match = re.match(r"(.{25,}?), (?:and|but|which|who|where|while|although) [^,]+$", sentence)
    return f"{match[1]}." if match else None


def other_numeral(sentence: str) -> str | None:
    """Write a number in another way: 12 and twelve, 1,500 and 1500."""
    match = _NUMBER.search(sentence)
    if match is not None:
        said = match[0]
        if "," in said:
            return _replaced(sentence, match, said.replace(",", ""))
        if said.isdigit() and len(said) > 4:
            return _replaced(sentence, match, f"{int(said):,}")
        if said.isdigit() and str(int(said)) == said and 1 < int(said) < len(NUMBER_WORDS):
            return _replaced(sentence, match, NUMBER_WORDS[int(said)])
    match = re.search(rf"\b(?:{'|'.join(NUMBER_WORDS[2:])})\b", sentence)
    return match and _replaced(sentence, match, str(NUMBER_WORDS.index(match[0])))


def other_date(sentence: str) -> str | None:
    """Write a date in another order: 4 May 1912 and May 4, 1912."""
    months = "|".join(MONTHS)
    turned = re.sub(rf"\b(\d\d?) ({months}) (\d{{4}})\b", r"\2 \1, \3", sentence, count=1)
    if turned == sentence:
        turned = re.sub(rf"\b({months}) (\d\d?), (\d{{4}})\b", r"\2 \1 \3", sentence, count=1)
    return turned if turned != sentence else None


def synonym(sentence: str) -> str | None:
    """Replace a word by another one for the same."""
    match = next((one for one in _WORD.finditer(sentence) if one[0] in SYNONYMS), None)
    return match and _replaced(sentence, match, SYNONYMS[match[0]][0])


_REWORDINGS: Sequence[Rewording] = (
    *(without_brackets, with_lead_last, first_clause, other_numeral, other_date, synonym),
)


def _drawn(matches: Sequence[re.Match[str]], rng: random.Random) -> re.Match[str] | None:
    return rng.choice(matches) if matches else None


def _replaced(sentence: str, match: re.Match[str], by: str) -> str:
    return f"{sentence[: match.start()]}{by}{sentence[match.end() :]}"
