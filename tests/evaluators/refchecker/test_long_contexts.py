"""Of long references each claim is shown the passage that decides it, wherever that stands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from demur import RefChecker, Sample
from demur._text import count_tokens, sentences
from demur.evaluators.refchecker.references import nearest
from demur_research.texts.answers import STATING
from support.fakes import ScriptedModel, isolated

LENGTH = 50_000
_TOWNS = ("Alderby", "Brackham", "Corran", "Dunmar", "Eskel", "Farrow", "Garvin", "Hollen")
_THINGS = ("mill", "bakery", "school", "harbour", "library", "market", "theatre", "orchard")


def padding(length: int) -> list[str]:
    """Paragraphs about other things, with names, numbers and common words of all kinds."""
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
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0], ids=["first", "middle", "last"])
@pytest.mark.parametrize("checker", ["joint", "per_claim"])
def test_unsupported_claims_are_found_in_50_kb_of_other_text(checker: str, place: float) -> None:
    found = {padded: _recall(checker, place, padded) for padded in (False, True)}
    assert found[False] == 1
    assert found[True] >= 0.95


def _recall(checker: str, place: float, padded: bool) -> float:
    """The share of wrong answers that fail with a judge that believes all but what it sees denied.

    So a claim fails only if the passage that decides it is shown.
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


def test_each_claim_is_in_one_reading_and_each_window_has_its_size() -> None:
    claims = [f"The {thing} of {town} has rooms." for town in _TOWNS for thing in _THINGS]
    contexts = [Document(page_content=text) for text in PADDING]
    readings = nearest(claims, contexts, None, 700)
    assert sorted(at for one in readings for at in one.claims) == list(range(len(claims)))
    for reading in readings:
        for window in reading.windows:
            assert sum(count_tokens(passage.text) for passage in window) <= 700
        shown = " ".join(passage.text for window in reading.windows for passage in window)
        for at in reading.claims:
            assert claims[at].split(" has")[0] in shown


def test_a_cross_encoder_is_shown_the_nearest_passages_one_by_one() -> None:
    contexts = [Document(page_content=text) for text in PADDING]
    readings = nearest(["The mill of Corran has rooms."] * 2, contexts, None, 320, lone=True)
    assert [one.claims for one in readings] == [(0,), (1,)]
    for reading in readings:
        assert all(len(window) == 1 for window in reading.windows)
        assert "The mill of Corran" in reading.windows[0][0].text
        assert len(reading.windows) <= 4
