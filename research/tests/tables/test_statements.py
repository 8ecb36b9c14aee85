"""Test that in no language a statement passes unchecked, and that refusals are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from benches import made, row_of, values
from demur import RefChecker, Sample
from demur.evaluators.refchecker.languages import languages
from demur_research.texts.answers import let_through
from demur_research.texts.statements import texts
from support.fakes import ScriptedModel

CODES = list(dict.fromkeys(one.language for one in texts()))
KNOWN = [language.code for language in languages()]


def _reply(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as an extractor that finds no claims, and as a judge that supports none."""
    return "No claims" if stage == "extraction" else "Neutral"


@pytest.mark.parametrize("code", CODES)
def test_every_statement_is_checked_though_the_extractor_finds_none(code: str) -> None:
    model = ScriptedModel(script=_reply)
    for form in ("sentences", "triplets"):
        checker = RefChecker(model, claims=form, checker="per_claim")
        for one in texts():
            if one.language == code and one.states:
                found = checker.invoke(Sample(answer=one.text, contexts=["Another text."]))
                assert not let_through(found), one.text


@pytest.mark.parametrize("code", KNOWN)
def test_at_most_one_harmless_text_in_ten_is_taken_for_a_statement(
    code: str, tmp_path: Path
) -> None:
    found = made("statements", tmp_path / "r", None, options={"languages": code})
    (silent, alarms), (silent_held_out, alarms_held_out) = (
        values(found, f"{code}, {part}") for part in ("in sight", "held out")
    )
    assert silent == silent_held_out == 0
    assert alarms is not None
    assert alarms_held_out is not None
    of_both = [one for one in texts() if one.language == code and not one.states]
    held_out = sum(one.held_out for one in of_both) / len(of_both)
    assert (1 - held_out) * alarms + held_out * alarms_held_out <= 10


def test_each_language_has_enough_texts_and_a_third_is_held_out() -> None:
    assert set(KNOWN) < set(CODES)
    for code in KNOWN:
        of_code = [one for one in texts() if one.language == code]
        assert sum(one.states for one in of_code) >= 80
        assert sum(not one.states for one in of_code) >= 40
        assert 0.3 < sum(one.held_out for one in of_code) / len(of_code) < 0.36
    unknown = [one for one in texts() if not one.known]
    assert {one.language for one in unknown}.isdisjoint(KNOWN)


def test_what_is_decided_wrongly_can_be_listed(tmp_path: Path) -> None:
    options = {"languages": "en,fi", "show": "in sight"}
    found = made("statements", tmp_path / "r", None, options=options)
    alarms = values(found, "en, in sight")[1]
    assert alarms is not None
    listed = [note for note in found.notes if note.startswith("en, ")]
    harmless = [o for o in texts() if o.language == "en" and not o.states and not o.held_out]
    assert len(listed) == pytest.approx(alarms / 100 * len(harmless))
    assert row_of(found, "languages without rules, in sight").items
    assert values(found, "languages without rules, in sight")[0] == 0
