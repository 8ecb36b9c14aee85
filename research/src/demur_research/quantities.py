"""How many supported claims `missing_quantities` flags, and how many planted errors it catches.

Each set is halved by a hash of the text that its rows share (a document, a question, a claim): the
rules were made on the development half, and no row of the other one was looked at. Planted: in each
supported claim one quantity becomes another that does not stand in the evidence. Many rows share a
document or a claim, so the intervals are too narrow.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from demur._share import Share
from demur.evaluators.refchecker.quantities import missing_quantities

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


class _Row(NamedTuple):
    claim: str
    evidence: list[str]
    key: str
    """What rows of one half share."""


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _wice(data: Path) -> Iterator[_Row]:
    for row in _lines(data / "wice/claim_dev.jsonl"):
        if row["label"] == "supported":
            yield _Row(row["claim"], [" ".join(row["evidence"])], row["claim"])


def _wice_chunks(data: Path) -> Iterator[_Row]:
    for row in _lines(data / "nli/wice_claim_oracle.jsonl"):
        if row["label"] == "supported" and row["part"] == "test":
            yield _Row(row["claim"], [" ".join(chunk) for chunk in row["chunks"]], row["claim"])


def _factcheckbench(data: Path) -> Iterator[_Row]:
    for row in _lines(data / "nli/factcheckbench_stance.jsonl"):
        if row["stance"] == "completely-support":
            yield _Row(row["claim"], [row["evidence"]], row["claim"])


def _fever(data: Path) -> Iterator[_Row]:
    for row in _lines(data / "nli/fever_symmetric_v02.jsonl"):
        if row["label"] == "SUPPORTS":
            yield _Row(row["hypothesis"], [row["premise"]], row["group"])


def _halueval(data: Path) -> Iterator[_Row]:
    for row in _lines(data / "halueval/qa_first1000.jsonl"):
        yield _Row(row["right_answer"], [row["knowledge"]], row["question"])


def _fool_me_twice(data: Path) -> Iterator[_Row]:
    for row in _lines(data / "fool_me_twice/dev.jsonl"):
        if row["label"] == "SUPPORTS":
            shown = [one["text"] for one in row["gold_evidence"] + row["retrieved_evidence"]]
            yield _Row(row["text"], shown, row["text"])


def _summedits(data: Path) -> Iterator[_Row]:
    for path in sorted((data / "summedits").glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            if row["label"] == 1:
                yield _Row(row["summary"], [row["doc"]], row["doc"][:300])


_SETS = {
    "WiCE, whole page": _wice,
    "WiCE, chunks": _wice_chunks,
    "Factcheck-Bench": _factcheckbench,
    "FEVER symmetric": _fever,
    "HaluEval QA": _halueval,
    "Fool Me Twice": _fool_me_twice,
    "SummEdits": _summedits,
}


def _half(row: _Row) -> str:
    return ("development", "report")[hashlib.sha256(row.key.encode()).digest()[0] % 2]


def _planted(row: _Row) -> str | None:
    """The claim with one quantity changed; None where it has none that can be."""
    draw = random.Random(row.claim)
    sites = list(_SITE.finditer(row.claim))
    draw.shuffle(sites)
    evidence = " ".join(row.evidence)
    standing = set(re.findall(r"\w+(?:\.\d+)?", evidence.replace(",", "").lower()))
    standing |= set(re.findall(r"\d+", evidence)) | set(re.findall(r"[a-z]+", evidence.lower()))
    for site in sites:
        for _ in range(_TRIES):
            other = _other(site.group(), row.claim[site.end() :], draw)
            plain = other.replace(",", "").lower()
            names = {plain, *_ENGLISH.get(plain, ())}
            names |= {plain[:3]} if other in _MONTHS else set()
            if _PLURAL.match(row.claim, site.end()):  # A decade stands where a year of it does.
                names |= {f"{century}{plain[-2]}{at}" for century in (19, 20) for at in range(10)}
                names |= {plain[:-1] + str(at) for at in range(10)} | {f"{plain}s"}
            elif row.claim.startswith("th century", site.end()):
                names |= {str(int(plain) * 100 - back) for back in range(101)}
            names |= {word for of in _ENGLISH.items() if plain in of[1] for word in (of[0], *of[1])}
            if plain != site.group().replace(",", "").lower() and not names & standing:
                return row.claim[: site.start()] + other + row.claim[site.end() :]
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


def table(data: Path, half: str, show: bool, say: Callable[[str], None]) -> Iterator[str]:
    """Count, line by line of a table.

    Args:
        data: The folder of the data sets; one that is not there is left out.
        half: Which half of the rows, "development" or "report".
        show: Whether to say of each row what goes wrong.
        say: Is told that, and what is left out.
    """
    yield "| set | claims | with quantities | flagged | share | planted | caught | share |"
    yield "|---|---|---|---|---|---|---|---|"
    every: list[list[int]] = []
    began, signs = time.perf_counter(), 0
    for name, read in _SETS.items():
        try:
            rows = [row for row in read(data) if _half(row) == half]
        except FileNotFoundError as error:
            say(f"{name} is left out: {error}")
            continue
        counts = [0] * 5
        for row in rows:
            missing = missing_quantities(row.claim, row.evidence)
            stating = missing_quantities(row.claim, [])
            planted = _planted(row)
            caught = set(missing_quantities(planted or "", row.evidence)) - {*missing}
            for at, counted in enumerate((True, stating, missing, planted, caught)):
                counts[at] += bool(counted)
            signs += sum(map(len, row.evidence))
            if show and missing:
                say(f"FLAGGED {missing} {row.claim!r}\n  of {' '.join(row.evidence)[:999]!r}")
            if show and planted and not caught:
                say(f"LET BY {planted!r}\n  of {' '.join(row.evidence)[:999]!r}")
        every.append(counts)
        yield _line(name, counts)
    yield _line("all", [sum(column) for column in zip(*every, strict=True)])
    yield f"{time.perf_counter() - began:.1f} s, {signs / 1e6:.1f} million signs of evidence"


def _line(name: str, counts: list[int]) -> str:
    claims, stating, flagged, planted, caught = counts
    shares = [_shown(Share(flagged, claims)), _shown(Share(caught, planted))]
    cells = (name, claims, stating, flagged, shares[0], planted, caught, shares[1])
    return f"| {' | '.join(map(str, cells))} |"


def _shown(share: Share) -> str:
    if share.value is None or share.interval is None:
        return "-"
    low, high = share.interval
    return f"{share.value:.1%} ({low:.1%} to {high:.1%})"
