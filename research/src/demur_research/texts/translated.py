"""Hold thirty cases in thirteen languages: a passage with a right and a wrong claim about it.

A wrong claim differs from the right one in one thing, which the case's kind names. The English
texts are our own invention. Each language has translations of them, so claim and passage can be
taken from different languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from demur_research.texts import rows_of

ENGLISH = "en"


@dataclass(frozen=True)
class TranslatedClaim:
    """Hold a claim in one language, and a passage in the same or another one."""

    passage_id: str
    """The number of the case; right and wrong claims of all languages share it."""
    kind: str
    """What decides, such as "number", "weekday" or "negation"."""
    claim: str
    passage: str
    supported: bool
    """Whether the passage supports the claim."""


@cache
def _cases() -> dict[tuple[str, str], dict[str, str]]:
    """Return the cases by language and number."""
    rows = rows_of(Path(__file__).with_suffix(".jsonl"))
    return {(row["language"], row["case"]): row for row in rows}


def languages() -> list[str]:
    """Return the codes of the languages, English first."""
    return [*dict.fromkeys(language for language, _ in _cases())]


def translated(of_claim: str, of_passage: str) -> Iterator[TranslatedClaim]:
    """Yield the sixty claims in one language about the passages in another.

    Args:
        of_claim: The code of the claims' language, one of `languages()`.
        of_passage: The code of the passages' language.
    """
    for (language, number), case in _cases().items():
        if language == of_claim:
            passage = _cases()[of_passage, number]["passage"]
            for supported in (True, False):
                claim = case["right" if supported else "wrong"]
                yield TranslatedClaim(number, case["kind"], claim, passage, supported)
