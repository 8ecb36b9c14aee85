"""Count the supported claims that `missing_quantities` flags, and the planted errors it catches.

Each data set is divided into halves by a hash of the text that its rows share (a document, a
question, a claim). The rules were made on the development half, and no row of the other half was
looked at. For a planted error, one quantity of a supported claim becomes another one that is not in
the evidence.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from demur.evaluators.refchecker.quantities import missing_quantities
from demur_research.bench import Bench, Column, Figure, Result, Row, Table
from demur_research.datasets.rows import LabelledRow
from demur_research.resampling import share

_WORDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_ORDINALS = (
    *("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_ENGLISH = {str(at): {word} for at, word in enumerate(_WORDS, 2)} | {"1": {"one", "first"}}
for _at, _word in enumerate(_ORDINALS, 2):
    _ENGLISH[str(_at)] |= {_word, f"{_at}{'nd' if _at == 2 else 'rd' if _at == 3 else 'th'}"}
_SITE = re.compile(
    r"(?<![\w.,:/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\d:/]|[A-Za-z]{3})"
    rf"|\b(?i:{'|'.join(_WORDS + _ORDINALS)})\b|\b(?:{'|'.join(_MONTHS)})\b(?= \d)"
)
_PLURAL = re.compile(r"'?s\b")
_TRIES = 40

HALVES = ("development", "report")
_KEYS: dict[str, Callable[[LabelledRow], str]] = {
    "wice": lambda row: row.answers[0].text,
    "factcheck-bench": lambda row: row.answers[0].text,
    "fever-symmetric": lambda row: row.group,
    "halueval-qa": lambda row: str(row.question),
    "fool-me-twice": lambda row: row.answers[0].text,
    "summedits": lambda row: row.contexts[0][:300],
}
"""The data sets, and the text by which each is divided into halves."""


@dataclass(frozen=True)
class SupportedClaim:
    """Hold a claim that its evidence supports."""

    text: str
    evidence: tuple[str, ...]
    group: str = ""
    """The group of the claim. Claims of one group share a document, a question or evidence."""


def supported(bench: Bench, name: str, half: str) -> list[SupportedClaim]:
    """Return the supported claims of one half of a data set."""
    key = _KEYS[name]
    return [
        SupportedClaim(answer.text, row.contexts, f"{name} {row.group or row.key}")
        for row in bench.read(name)
        if HALVES[hashlib.sha256(key(row).encode()).digest()[0] % 2] == half
        for answer in row.answers
        if answer.hallucinated is False
    ]


def planted(row: SupportedClaim) -> str | None:
    """Return the claim with one quantity changed, or None if no quantity can be changed."""
    draw = random.Random(row.text)
    sites = list(_SITE.finditer(row.text))
    draw.shuffle(sites)
    evidence = " ".join(row.evidence)
    standing = set(re.findall(r"\w+(?:\.\d+)?", evidence.replace(",", "").lower()))
    standing |= set(re.findall(r"\d+", evidence)) | set(re.findall(r"[a-z]+", evidence.lower()))
    for site in sites:
        for _ in range(_TRIES):
            other = _other(site.group(), row.text[site.end() :], draw)
            plain = other.replace(",", "").lower()
            names = {plain, *_ENGLISH.get(plain, ())}
            names |= {plain[:3]} if other in _MONTHS else set()
            if _PLURAL.match(row.text, site.end()):  # The evidence may give a year of the decade.
                names |= {f"{century}{plain[-2]}{at}" for century in (19, 20) for at in range(10)}
                names |= {plain[:-1] + str(at) for at in range(10)} | {f"{plain}s"}
            elif row.text.startswith("th century", site.end()):
                names |= {str(int(plain) * 100 - back) for back in range(101)}
            names |= {word for of in _ENGLISH.items() if plain in of[1] for word in (of[0], *of[1])}
            if plain != site.group().replace(",", "").lower() and not names & standing:
                return row.text[: site.start()] + other + row.text[site.end() :]
    return None


def _other(said: str, after: str, draw: random.Random) -> str:
    if said in _MONTHS:
        return draw.choice(_MONTHS)
    for words in (_WORDS, _ORDINALS):
        if said.lower() in words:
            word = draw.choice(words)
            return word.capitalize() if said[0].isupper() else word
    if _PLURAL.match(after) and said.endswith("0"):
        return f"{said[:-2]}{draw.randint(1, 9)}0"
    if said.isdigit() and 1000 <= int(said) < 2100:
        return str(int(said) + draw.choice((-1, 1)) * draw.randint(1, 30))
    at = draw.choice([at for at, sign in enumerate(said) if sign.isdigit()])
    return said[:at] + draw.choice("123456789") + said[at + 1 :]


@dataclass(frozen=True)
class Counted:
    """Describe what is flagged in a claim, and in the same claim with a planted error."""

    group: str
    """The group of the claim."""
    stating: bool
    """Whether the claim states a quantity."""
    flagged: bool
    planted: bool
    """Whether an error could be planted."""
    caught: bool
    naive: bool
    """Whether a number of the claim is not in the evidence."""
    naively_caught: bool
    told: tuple[str, ...] = ()
    """Lines about what went wrong."""


def count(claim: SupportedClaim) -> Counted:
    """Check a claim, and the same claim with a planted error."""
    missing = missing_quantities(claim.text, claim.evidence)
    wrong = planted(claim)
    caught = set(missing_quantities(wrong or "", claim.evidence)) - {*missing}
    evidence = " ".join(claim.evidence)[:999]
    told = [f"flagged {missing}: {claim.text!r} of {evidence!r}"] if missing else []
    told += [f"let by: {wrong!r} of {evidence!r}"] if wrong and not caught else []
    naive = _strange_numbers(claim.text, claim.evidence)
    return Counted(
        group=claim.group,
        stating=bool(missing_quantities(claim.text, [])),
        flagged=bool(missing),
        planted=wrong is not None,
        caught=bool(caught),
        naive=bool(naive),
        naively_caught=bool(_strange_numbers(wrong or "", claim.evidence) - naive),
        told=tuple(told),
    )


def _strange_numbers(text: str, evidence: Sequence[str]) -> set[str]:
    return {*re.findall(r"\d+", text)} - {*re.findall(r"\d+", " ".join(evidence))}


def _share(counted: Iterable[Counted], holds: Callable[[Counted], bool]) -> Figure:
    among = list(counted)
    return share([*map(holds, among)], [one.group for one in among])


def _row(name: str, counted: Sequence[Counted]) -> Row:
    wrong = [one for one in counted if one.planted]
    return Row(
        name,
        (
            Figure(sum(one.stating for one in counted)),
            _share(counted, lambda one: one.flagged),
            Figure(len(wrong)),
            _share(wrong, lambda one: one.caught),
        ),
        items=len(counted),
    )


def _floor(
    name: str,
    counted: Sequence[Counted],
    flagged: Callable[[Counted], bool],
    caught: Callable[[Counted], bool],
) -> Row:
    wrong = [one for one in counted if one.planted]
    figures = (None, _share(counted, flagged), None, _share(wrong, caught))
    return Row(name, figures, items=len(counted), floor=True)


def _make(bench: Bench) -> Result:
    (half,) = bench.names("half", HALVES, ["report"])
    every: list[Counted] = []
    rows = []
    for name in bench.names("sets", _KEYS):
        counted = [count(claim) for claim in supported(bench, name, half)[: bench.limit]]
        every += counted
        rows.append(_row(name, counted))
    rows += [
        _row("all", every),
        _floor("every quantity", every, lambda one: one.stating, lambda one: True),
        _floor(
            "digits that do not stand in the evidence",
            every,
            lambda one: one.naive,
            lambda one: one.naively_caught,
        ),
    ]
    notes = [
        f"The claims are the supported ones of the {half} half.",
        "Claims that share a document, a question or evidence count in the intervals as fewer "
        "independent ones.",
        "fever-symmetric was halved otherwise when the rules were made, so some of its rows were "
        "seen.",
    ]
    if bench.names("show", ("mistakes", "none"), ["none"]) == ["mistakes"]:
        notes += [text for one in every for text in one.told]
    return Result(
        (
            Column("with quantities", 0),
            Column("flagged, %"),
            Column("planted", 0),
            Column("caught, %"),
        ),
        tuple(rows),
        tuple(notes),
    )


QUANTITIES = Table(
    "quantities",
    "demur",
    "How many supported claims are flagged for a quantity, and how many planted errors are caught.",
    tuple(_KEYS),
    _make,
    asks=False,
    options={
        "half": f"{' or '.join(HALVES)} [default: report]",
        "sets": f"some of {', '.join(_KEYS)}, with commas between [default: all]",
        "show": "mistakes lists each claim that was flagged and each error that was missed "
        "[default: none]",
    },
)

TABLES = (QUANTITIES,)
