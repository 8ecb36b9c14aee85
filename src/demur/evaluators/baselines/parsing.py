"""Read a verdict, a yes or no, or questions in what a judge wrote, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from demur.evaluators.hedges import DOUBT, PART
from demur.runtime.prompting import without_delimiters, without_echo

# The bad word stands first, since it contains the good one: a search for "factual" alone would read
# every "non-factual" as its opposite.
_VERDICT = (
    r"(?<!\w)(?:(?P<bad>(?:non|un)[\s\u2010-\u2015-]*factual|incorrect)"
    r"|(?P<good>factual|correct))(?!\w)"
)
_MENTION = re.compile(
    r"(?P<bound>[.;:!?\n()]|,\s{0,3}(?:so|thus|hence|therefore|but)(?!\w))"
    r"|(?P<negation>(?<!\w)(?:not?|neither|nor|never|cannot|hardly|barely|scarcely|without|unlikely"
    r"|far\sfrom)(?!\w)|\w{1,9}n['\u2019]t(?!\w))"
    # A passage that is only partly right is wrong; a passage that may be right gives no verdict.
    r"|(?P<partial>(?<!\w)(?:partly|partially|mostly|largely|somewhat)(?!\w))"
    rf"|(?P<doubt>{PART}|{DOUBT})"
    rf"|{_VERDICT}(?P<of>\s+(?:errors?|mistakes?|inaccurac|issues?|problems?))?",
    re.I,
)
_EXCEPTION = (
    r"(?:(?<!\w)(?:but|however|although|though|albeit|except(?:ing|ions?)?|save\s(?:for|that)"
    r"|(?:apart|aside)\sfrom|other\sthan|unless|if)(?!\w))"
)
_TAKEN_BACK = re.compile(_EXCEPTION, re.I)
# Searched in the text from a verdict to the next one or to the end of the sentence.
_QUALIFIED = re.compile(rf"\?|^\W*[:=]\W*(?:no|false)(?!\w)|{PART}|{DOUBT}|{_EXCEPTION}", re.I)
_BEHIND_ENDS = re.compile(rf"[.!;\n]|{_VERDICT}", re.I)
_MENU = re.compile(
    r"(?:non[\s\u2010-\u2015-]*factual|incorrect|factual|correct)['\"*_]*\s+or\s+['\"*_]*"
    r"(?:non[\s\u2010-\u2015-]*factual|incorrect|factual|correct)",
    re.I,
)
_ALONE = re.compile(
    rf"\W*(?:(?:the |my |final |overall )*(?:answer|verdict|label|judge?ment|conclusion)\W+"
    rf"(?:is\W+)?)?{_VERDICT}[^\w?]*",
    re.I,
)


def parse_verdict(reply: str, shown: Sequence[str] = ()) -> bool | None:
    """Return whether a reply calls a passage factual (correct), or None if it does not say.

    Text that the reply copies from `shown` does not count. A reply that gives both verdicts counts
    only if its first or last line is a verdict alone, and these lines do not differ. A reply that
    calls the passage factual but names an exception counts only if its last line is a verdict
    alone.
    """
    text = without_echo(without_delimiters(reply), shown).strip()
    verdicts = _verdicts(_MENU.sub("", text))
    excepting = verdicts == {True} and bool(_TAKEN_BACK.search(text))
    if len(verdicts) < 2 and not excepting:
        return next(iter(verdicts), None)
    lines = [line for line in text.splitlines() if line.strip()]
    ends = (-1,) if excepting else (0, -1)
    alone = {bool(match["good"]) for at in ends if (match := _ALONE.fullmatch(lines[at]))}
    return alone.pop() if len(alone) == 1 else None


def _verdicts(text: str) -> set[bool]:
    """Return the verdicts in a text.

    A denied "factual" is the verdict "non-factual". A denied "non-factual" is no verdict, nor is a
    "factual" that is doubted, asked about or qualified.
    """
    verdicts: set[bool] = set()
    negated = partial = doubted = False
    for match in _MENTION.finditer(text):
        if match["bound"]:
            negated = partial = doubted = False
        elif match["negation"]:
            negated = True
        elif match["partial"]:
            partial = True
        elif match["doubt"]:
            doubted = True
        elif match["good"] and not match["of"]:
            if negated or partial:
                verdicts.add(False)
            elif not doubted and not _qualified(text[match.end() : match.end() + 200]):
                verdicts.add(True)
        elif not negated:
            verdicts.add(False)
    return verdicts


def _qualified(behind: str) -> bool:
    return bool(_QUALIFIED.search(_BEHIND_ENDS.split(behind, maxsplit=1)[0]))


_WORD = re.compile(r"\W*(?:(?:the |my )?(?:final )?answer\W+(?:is\W+)?)?(yes|no)(?!\w)", re.I)


def parse_yes_no(reply: str, shown: Sequence[str] = ()) -> bool | None:
    """Return whether a reply begins its first or last line with yes, or None if it is unclear.

    The result is False for "no", and None if the reply says neither or both. Only beginnings count,
    since "no" is an ordinary word within a sentence.
    """
    lines = without_echo(without_delimiters(reply), shown).strip().splitlines()
    answers = {word[1].lower() for line in lines[:1] + lines[-1:] if (word := _WORD.match(line))}
    return answers == {"yes"} if len(answers) == 1 else None


_ASKING = re.compile(r"^\s*(?:yes\W+)?(.*[?\uff1f\u061f].*)$", re.I | re.M)


def parse_questions(reply: str) -> str:
    """Return the lines of a reply that ask something; empty if no line has a question mark.

    Other text of an examiner, such as the passage or the answers that it expects, must not reach
    the examinee.
    """
    return "\n".join(line.strip() for line in _ASKING.findall(without_delimiters(reply)))
