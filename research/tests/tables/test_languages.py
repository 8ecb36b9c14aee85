"""Test the table of judges in many languages, with a scripted judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, row_of, supporting, values
from demur_research.texts.translated import languages, translated
from support.fakes import isolated

RIGHT = {one.claim: one.supported for code in languages() for one in translated(code, code)}


def _blind_to_german(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    claim = isolated("claim", messages)
    german = claim in {one.claim for one in translated("de", "de")}
    return supporting(0.9 if RIGHT[claim] or german else 0.1)


def test_each_language_has_a_right_and_a_wrong_claim_for_each_case() -> None:
    english = [*translated("en", "en")]
    assert len(languages()) == 13
    for code in languages():
        claims = [*translated(code, "en")]
        assert [(o.passage, o.kind, o.supported) for o in claims] == [
            (o.passage, o.kind, o.supported) for o in english
        ]
        assert len({one.claim for one in claims}) == len(claims) == 60


def test_languages_have_figures_of_their_own_and_other_letters_are_undetermined(
    tmp_path: Path,
) -> None:
    model = LocalJudge(script=_blind_to_german)
    options = {"judge": "local", "languages": "en,de,ru"}
    found = made("languages", tmp_path / "r", model, options=options)
    assert values(found, "de, passage de")[0] == 100
    assert values(found, "ru, passage ru")[0] == 0
    assert values(found, "de, passage en")[3] == 0
    across = row_of(found, "ru, passage en")
    assert (across.items, across.undetermined) == (0, 60)
    assert row_of(found, "all, passage en").items == 60
    assert values(found, "name, same language")[0] == 50
    assert row_of(found, "cost of a claim").spent is not None
