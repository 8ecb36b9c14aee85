"""Test that each claim is shown the deciding passage, wherever it is in long references."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from langchain_core.messages import BaseMessage

from demur import RefChecker, Sample
from demur._text import count_tokens, sentences
from demur.evaluators.refchecker.nearness import nearest
from demur_research.texts.answers import STATING
from support.fakes import ScriptedModel, isolated

LENGTH = 50_000
_TOWNS = ("Alderby", "Brackham", "Corran", "Dunmar", "Eskel", "Farrow", "Garvin", "Hollen")
_THINGS = ("mill", "bakery", "school", "harbour", "library", "market", "theatre", "orchard")


def padding(length: int) -> list[str]:
    """Return paragraphs about other things, with names, numbers and common words of all kinds."""
    paragraphs: list[str] = []
    for number, (town, thing) in enumerate(itertools.cycle(itertools.product(_TOWNS, _THINGS))):
        paragraphs.append(
            f"The {thing} of {town} is known for its long history. It was opened by number "
            f"{number} of the council and has {number % 90 + 3} rooms. In summer it is open until "
            f"nine, and a tower of {number % 40 + 12} metres stands beside it. Whoever comes by "
            "bus gets off at the bridge and follows the river; there is no fee for children."
        )
        if sum(map(len, paragraphs)) > length:
            return paragraphs
    raise AssertionError


PADDING = padding(LENGTH)
CASES = [answer for answer in STATING if not answer.supported and answer.contexts][::6]


@pytest.mark.slow
@pytest.mark.parametrize(("checker", "place"), [("joint", 0.0), ("per_claim", 0.5), ("joint", 1.0)])
def test_unsupported_claims_are_found_in_50_kb_of_other_text(checker: str, place: float) -> None:
    found = {padded: _recall(checker, place, padded) for padded in (False, True)}
    assert found[False] == 1
    assert found[True] >= 0.95


def _recall(checker: str, place: float, padded: bool) -> float:
    """Return the share of wrong answers that fail when the judge believes unless it sees a denial.

    A claim therefore fails only if the passage that decides it is shown.
    """
    caught = 0
    for answer in CASES:

        def script(stage: str, messages: Sequence[BaseMessage], of: object = answer) -> str:
            reference = isolated("reference", messages)
            deciding = of.contexts  # type: ignore[attr-defined]
            shown = all(text[a:b] in reference for text in deciding for a, b in sentences(text))
            label = "Contradiction" if shown else "Entailment"
            if stage == "claim":
                return label
            lines = isolated("claims", messages).splitlines()
            return "\n".join(
                f"{line.partition('.')[0]}. {label}" for line in lines if line[:1].isdigit()
            )

        at = int(place * len(PADDING))
        others = PADDING if padded else []
        contexts = ["\n\n".join([*others[:at], *answer.contexts, *others[at:]])]
        model = ScriptedModel(script=script)
        checking = RefChecker(model, checker=checker, claims="sentences")
        found = checking.invoke(
            Sample(question=answer.question, answer=answer.answer, contexts=contexts)
        )
        caught += found.passed is not True
        for messages in model.requests:
            assert count_tokens(isolated("reference", messages)) <= 3100
    return caught / len(CASES)


TEXTS: dict[str, int | None] = {text: at for at, text in enumerate(PADDING)}


def test_no_claim_is_shown_more_windows_than_it_may_be_and_each_window_has_its_size() -> None:
    claims = [f"The {thing} of {town} has rooms." for town in _TOWNS for thing in _THINGS]
    for most in (1, 2, 4):
        chosen = nearest(claims, TEXTS, 700, most)
        for claim, of_claim in zip(claims, chosen, strict=True):
            windows = of_claim.windows
            assert len(windows) == most
            for window in windows:
                assert sum(count_tokens(passage.text) for passage in window) <= 700
            shown = [passage.text for window in windows for passage in window]
            assert len(shown) == len(set(shown))
            assert claim.split(" has")[0] in " ".join(shown)
