"""Read the labels that the checker wrote, without ever evaluating them as code.

Each function returns a result for any string. A string in the place of a label says why there is no
label. Entailment counts only if the reply says it plainly (`entailment.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from demur.evaluators.hedges import TAKEN_BACK
from demur.evaluators.refchecker.entailment import (
    explains,
    introduces,
    says_entailment,
    takes_back,
    without_denied_labels,
)
from demur.schema import ClaimLabel

_LABELS = {
    "entail": ClaimLabel.ENTAILMENT,
    "neutral": ClaimLabel.NEUTRAL,
    "contradict": ClaimLabel.CONTRADICTION,
}
_WORD = r"(entail(?:ment|ed|s)?|neutral|contradict(?:ion|ory|ed|s|ing)?)(?!\w)"
_DENIED_AFTER = r"[\"'*_`]{0,4}\s{0,3}[:=]\s{0,3}[\"'*_`]{0,4}(?:no|none|not|null|false)\b"
_MENTION = re.compile(
    rf"(?P<negation>(?<!\w)(?:not?|non|never|neither|nor|none|without|cannot|hardly|fails?|failed)"
    rf"(?!\w)|\w{{1,9}}n['’]t(?!\w))"
    # A new clause begins: "it does not tell, so Neutral".
    rf"|(?P<bound>[.;:!?\n()—]|,\s{{0,3}}(?:so|thus|hence|therefore)(?!\w))"
    rf"|(?<!\w){_WORD}(?P<denied>{_DENIED_AFTER})?",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"\W*(?:(?:the |my |final |overall )*(?:label|answer|verdict|judge?ment)\W+(?:is\W+)?)?"
    rf"{_WORD}\W*",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    rf"(?<!\w)(?<!\d\.)(?P<tag>(?:claim\s{{0,3}})?#?)(?P<number>\d{{1,4}})[\"'*_`]{{0,4}}"
    rf"(?:,|[)\]]?[\"'*_`]{{0,4}}\s{{0,3}}(?P<mark>is\b|[.:=\-–—>→]{{1,3}})?)"
    rf"\s{{0,9}}[\"'*_`(\[]{{0,6}}{_WORD}"
    # Not `Neutral: 2`: the number of the line before would be read as this label's number.
    rf"(?![\"'*_`]{{0,4}}\s{{0,3}}[:=\-–—(\[]\s{{0,3}}[\"'*_`(\[{{]{{0,4}}[\d\]}}])",
    re.IGNORECASE,
)
_LEADING_NUMBER = re.compile(
    r"\W*(?:claim\s{0,3})?#?(\d{1,4})(?!\w|\.\d|\s?[,&/–-]\s?\d|\s(?:and|to|or)\s)", re.IGNORECASE
)
_LIST_NUMBER = re.compile(
    r"\W*(?:claim\s{0,3})?#?(\d{1,4})[\"'*_`]{0,4}\s{0,3}[.:)\]](?!\d)", re.IGNORECASE
)
_LABEL_AT_END = re.compile(
    rf"(?:[.:=>→|(\[*\"—–]|(?<!\w)-)\s{{0,3}}[\"'*_`]{{0,4}}{_WORD}\W*$", re.IGNORECASE
)
# In scripts without spaces between words, each character counts as a word.
_CLAIM_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")

NO_LABEL = "the checker gave no label for this claim"
UNREADABLE = "the checker's reply holds no readable label"
QUALIFIED = "the checker's reply does not say Entailment plainly"
SEVERAL = "the checker's reply names several labels"


def parse_label(reply: str) -> ClaimLabel | str:
    """Read a reply that should be one label; a returned string says why it cannot be read.

    If a reply names several labels, or takes back what it says, it counts only if its last line is
    a single label.
    """
    mentions = list(_mentions(reply))
    affirmed = {label for label, sure in mentions if sure}
    single = len(affirmed) == 1 and not affirmed & {label for label, sure in mentions if not sure}
    entailed = affirmed == {ClaimLabel.ENTAILMENT}
    if single and (not entailed or says_entailment(reply)):
        return affirmed.pop()
    if affirmed and (label := _last_line(reply)):
        return label
    if not affirmed:
        return UNREADABLE
    return QUALIFIED if single else SEVERAL


def parse_numbered_labels(
    reply: str, numbers: Sequence[int], need_numbers: bool = False
) -> dict[int, ClaimLabel | str]:
    """Read the labels of numbered claims, in any order; a string says why a label cannot be read.

    The function also reads a JSON object from number to label. It reads labels without numbers if
    there is exactly one for each claim, unless `need_numbers` is set. If the reply has several
    complete lists, the last one counts, since earlier ones may be quotations. Otherwise a claim
    with two different labels has none. A number that was not asked about makes the whole reply
    unreadable, since the list may start elsewhere, for instance at 0.
    """
    numbered = _numbered_in(reply)
    seen = {number for number, _ in numbered} | set(_list_numbers(reply))
    if strange := sorted(seen.difference(numbers)):
        named = ", ".join(map(str, strange[:3])) + (", ..." if len(strange) > 3 else "")
        why = f"the checker's reply has numbers that were not asked for: {named}"
        return dict.fromkeys(numbers, why)
    if not numbered:
        bare = _bare_labels(reply)
        if need_numbers or len(bare) != len(numbers):
            why = (
                f"the checker gave {len(bare)} labels without numbers for {len(numbers)} claims"
                if bare
                else UNREADABLE
            )
            return dict.fromkeys(numbers, why)
        numbered = list(zip(numbers, bare, strict=True))
    labels: dict[int, ClaimLabel | str] = dict.fromkeys(numbers, NO_LABEL)
    last: dict[int, ClaimLabel | str] = {}
    for number, label in numbered:
        last = {} if number in last else last  # a repeated number begins another list
        last[number] = label
        known = labels[number]
        if known == NO_LABEL:
            labels[number] = label
        elif known != label:
            labels[number] = "the checker gave several labels for this claim"
    whole = last.keys() >= labels.keys()
    return {number: last[number] for number in numbers} if whole else labels


def _mentions(text: str) -> Iterator[tuple[ClaimLabel, bool]]:
    """Yield the labels that `text` names, in order, each with whether the text affirms it.

    A label is not affirmed after a negation in the same clause, before `false`, or in a question.
    """
    clause: list[tuple[ClaimLabel, bool]] = []
    negated = False
    for match in _MENTION.finditer(text):
        if match["bound"]:
            yield from ((label, sure and match["bound"] != "?") for label, sure in clause)
            clause, negated = [], False
        elif match["negation"]:
            negated = True
        else:
            clause.append((_label(match[3]), not negated and not match["denied"]))
    yield from clause


def _label(word: str) -> ClaimLabel:
    return next(label for stem, label in _LABELS.items() if word.lower().startswith(stem))


def _last_line(reply: str) -> ClaimLabel | None:
    """Return the label that stands alone in the last line, unless a sentence continues into it."""
    lines = reply.strip().splitlines()
    alone = _ALONE.fullmatch(lines[-1])
    if not alone or TAKEN_BACK.search(lines[-1]):
        return None
    label = _label(alone[1])
    above = lines[-2].rstrip() if len(lines) > 1 else ""
    goes_on = above[-1:] not in tuple('.!?。！？"”)')
    taken_back = label is ClaimLabel.ENTAILMENT and goes_on and TAKEN_BACK.search(above)
    return None if taken_back else label


@dataclass(frozen=True)
class _Entry:
    """Hold a label, its number, and the text of the list around it; later lines are added."""

    number: int
    label: ClaimLabel
    before: str = ""
    after: list[str] = field(default_factory=list)

    def read(self) -> ClaimLabel | str:
        if self.label is not ClaimLabel.ENTAILMENT:
            return self.label
        after = without_denied_labels("\n".join(self.after))
        plain = not takes_back(self.before) and not takes_back(after) and explains(after, 0)
        return self.label if plain else QUALIFIED


def _numbered_in(reply: str) -> list[tuple[int, ClaimLabel | str]]:
    entries: list[_Entry] = []
    latest: dict[int, _Entry] = {}
    behind: list[str] = []
    for line in reply.splitlines():
        if new := list(_entries_in(line)):
            entries += new
            latest.update((entry.number, entry) for entry in new)
            behind = []
        elif leading := _LEADING_NUMBER.match(line):
            if entry := latest.get(int(leading[1])):
                entry.after.append(line)
        elif entries:
            entries[-1].after.append(line)
            behind.append(line)
    # A text behind a list may be about any of its claims.
    taken_back = takes_back("\n".join(behind))
    return [
        (entry.number, QUALIFIED if taken_back and label is ClaimLabel.ENTAILMENT else label)
        for entry in entries
        for label in [entry.read()]
    ]


def _entries_in(line: str) -> Iterator[_Entry]:
    affirmed = [label for label, sure in _mentions(line) if sure]
    pairs = list(_pairs_in(line))
    leading = _LEADING_NUMBER.match(line)
    # To read a line with other labels, or with another number first, would be a guess.
    if [_label(pair[4]) for pair in pairs] == affirmed and (
        not pairs or not leading or int(leading[1]) == int(pairs[0]["number"])
    ):
        ends = [0, *(pair.end() for pair in pairs)]
        starts = [*(pair.start() for pair in pairs), len(line)]
        between = [line[end:start] for end, start in zip(ends, starts, strict=True)]
        for at, pair in enumerate(pairs):
            before = re.split(r"[,;.)|]", between[at])[-1]
            after = between[at + 1]
            yield _Entry(int(pair["number"]), _label(pair[4]), before, [after])
    elif leading and len(affirmed) == 1 and (last := _LABEL_AT_END.search(line)):
        # The number, the repeated claim, and its label. One or two words are not a claim.
        before = line[: last.start(1)]
        words = len(_CLAIM_WORD.findall(before, leading.end()))
        if not 0 < words < 3 or introduces(before, len(before)):
            yield _Entry(int(leading[1]), affirmed[0], before, [line[last.end(1) :]])


def _pairs_in(line: str) -> Iterator[re.Match[str]]:
    """Yield the numbers that a label directly follows; group 4 of each match is the label."""
    end = 0
    for match in _NUMBERED.finditer(line):
        before = line[end : match.start()]
        begins = not re.search(r"\w", before)
        marked = match["mark"] and (end or match["tag"] or before.rstrip().endswith(":"))
        if begins or marked:
            yield match
        end = match.end()


def _list_numbers(reply: str) -> Iterator[int]:
    """Yield the numbers at the beginning of lines that look like a list or have a label."""
    for line in reply.splitlines():
        number = _LIST_NUMBER.match(line) or _LEADING_NUMBER.match(line)
        if number and (number.re is _LIST_NUMBER or re.search(_WORD, line, re.IGNORECASE)):
            yield int(number[1])


def _bare_labels(reply: str) -> list[ClaimLabel]:
    """Return a reply's labels in order if it has nothing else but a heading, else none."""
    pieces = [piece for piece in re.split(r"[\n,;]", reply) if re.search(r"\w", piece)]
    if pieces and pieces[0].rstrip().endswith(":"):
        pieces = pieces[1:]
    if TAKEN_BACK.search("\n".join(pieces)):
        return []
    alone = [re.fullmatch(rf"\W*{_WORD}\W*", piece, re.IGNORECASE) for piece in pieces]
    return [_label(match[1]) for match in alone if match] if all(alone) else []
