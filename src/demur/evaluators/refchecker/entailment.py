"""Tell whether a reply of a checker says Entailment plainly, and takes nothing of it back.

Entailment lets a claim pass, so in doubt it is not said.
"""

from __future__ import annotations

import re

from demur.evaluators.hedges import NEGATION, TAKEN_BACK

_ENTAILMENT = re.compile(r"(?<!\w)entail(?:ment|ed|s)?(?!\w)", re.IGNORECASE)
_OTHER_LABEL = re.compile(r"(?<!\w)(?:neutral|contradict)", re.IGNORECASE)
# "Entailment, not Neutral" takes nothing back.
_OTHER_DENIED = re.compile(
    r",?\s{0,3}\(?(?<!\w)not\s(?:an?\s)?(?:neutral|contradict(?:ion|ory|ed))(?!\w)\)?",
    re.IGNORECASE,
)
# A denial that the reference states may be what the claim says.
_REPORTED = re.compile(
    r"(?<!\w)(?:says?|states?|stated|implies|confirms?|mentions?|notes?|writes|shows?)\sthat\s"
    r"[^,;:.!?()\n—]{1,300}",
    re.IGNORECASE,
)
_REPORTED_DENIAL = re.compile(
    rf"{NEGATION}(?!\s(?:so|true|right|correct|quite|all|full|fully|entire|entirely|exactly|the))",
    re.IGNORECASE,
)
_NOUN = r"(?:label|answer|verdict|judge?ment|conclusion|relation(?:ship)?|result|boxed)"
_REFERENCE = (
    r"(?:the |this )?(?:given |provided )?(?:reference|passage|text|context|source|document)"
)
_CLAIM = r"(?:(?:(?:the |this )?(?:claim|statement)|it)(?: \d{1,4})?|\d{1,4})"
_SURELY = r"(?:(?:fully|clearly|directly|explicitly|strongly|entirely|completely) )?"
# Matches the words from the beginning of the sentence to the label, each with a space behind it.
_LEAD = re.compile(
    rf"(?:(?:so|thus|hence|therefore|yes|overall|based on {_REFERENCE}) )?(?:{_CLAIM} )?"
    rf"(?:(?:(?:the|my|final|overall|correct) )*{_NOUN} (?:(?:of|for) {_CLAIM} )?(?:is )?"
    rf"|{_REFERENCE} {_SURELY}|is {_SURELY})?",
    re.IGNORECASE,
)
_LABELLED = re.compile(rf"(?<!\w){_NOUN}[\"'*_`]{{0,4}}\s?[:=][\"'*_`\s]{{0,6}}$", re.IGNORECASE)
_SENTENCE_BOUND = re.compile(r"[.!。\n|]|,\s{0,3}(?=(?:so|thus|hence|therefore)(?!\w))")
_OBJECT = re.compile(
    rf"\s(?:by {_REFERENCE}|(?:the|this) (?:claim|statement)|it)(?!\w)", re.IGNORECASE
)
_SIGNS = re.compile(r"[\W_]*")
_REASON = re.compile(
    r"(?<!\w)(?:because|since|reference|passage|text|context|source|document|evidence|true"
    r"|reason(?:ing)?|explanation|according|says?|said|state[sd]?|mention(?:s|ed)?|confirm(?:s|ed)?"
    r"|support(?:s|ed)?|impl(?:y|ies|ied)|describe[sd]?|given|gives|show[sn]?|follows|match(?:es)?"
    r"|direct(?:ly)?|explicit(?:ly)?)(?!\w)",
    re.IGNORECASE,
)
_NEAR = 300
"""The number of characters around a label in which words that introduce or explain it are
sought."""


def says_entailment(text: str) -> bool:
    """Return whether Entailment is said plainly, and nothing in the text takes it back."""
    if takes_back(text):
        return False
    text = without_denied_labels(text)
    return any(
        introduces(text, match.start()) and explains(text, match.end())
        for match in _ENTAILMENT.finditer(text)
    )


def without_denied_labels(text: str) -> str:
    """Return a text without the other labels that it denies: "Entailment, not Neutral"."""
    return _OTHER_DENIED.sub("", text)


def takes_back(text: str) -> bool:
    """Return whether a text denies or doubts something, or names another label."""
    text = _REPORTED.sub(
        lambda match: _REPORTED_DENIAL.sub("", match[0]), without_denied_labels(text)
    )
    return bool(TAKEN_BACK.search(text) or _OTHER_LABEL.search(text))


def introduces(text: str, at: int) -> bool:
    """Return whether the words before `text[at]` introduce a label, or there are none."""
    before = text[max(0, at - _NEAR) : at]
    sentence = _SENTENCE_BOUND.split(before)[-1]
    words = "".join(f"{word} " for word in re.findall(r"[^\W_]+", sentence))
    return bool(_LEAD.fullmatch(words) or _LABELLED.search(before))


def explains(text: str, at: int) -> bool:
    """Return whether nothing, a new sentence, or the reason follows the label before `text[at]`."""
    after = text[at : at + _NEAR]
    if match := _OBJECT.match(after):
        after = after[match.end() :]
    signs = _SIGNS.match(after)[0]  # type: ignore[index]  # matches the empty string
    rest = after[len(signs) :]
    if not rest or "</" in signs or re.search(r"[.!。\n|]", signs):
        return True
    first, *_ = re.split(r"[.!。\n|]", rest, maxsplit=1)
    introduced = bool(re.search(r"[,;:(—–-]", signs)) or rest[:7].lower().startswith(
        ("because", "since")
    )
    return introduced and not rest[0].isdigit() and bool(_REASON.search(first))
