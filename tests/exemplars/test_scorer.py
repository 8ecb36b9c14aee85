"""Test how a candidate gets its score, and what distinguishes one scorer from another."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone

import pytest

from demur.exemplars.offers import read_offer
from demur.exemplars.scorer import Scorer
from demur.runtime import drive
from support.exemplars import contrary, scored, scorer
from support.fewl import QUESTION, model

pytest.importorskip("chromadb")


def test_answers_are_scored_side_by_side_and_the_references_asked_once() -> None:
    asked, before = model(), datetime.now(timezone.utc)
    given = Scorer(scorer(reference_models=asked))
    offer = read_offer((QUESTION, ["0.2 no", "0.8 yes"]), "run 7", "add")
    found, ledger = drive(given.score(offer), {}, None)
    assert asked.stages == ["reference"]
    assert set(ledger.usage) == {"exemplar"}
    assert (found.failed, found.usage.calls) == ((), 1)
    low, high = found.candidates
    assert [low.score, high.score] == [pytest.approx(scored(0.2)), pytest.approx(scored(0.8))]
    assert (high.answer, high.scorer, high.source) == ("0.8 yes", given.name, "run 7")
    assert high.parts == {
        "weights": [1.0, 1.0],
        "similarities": [0.8, 0.8],
        "penalties": None,
        "expertise": None,
        "pairs_used": 0,
        "neighbors_used": 0,
    }
    scored_at = datetime.fromisoformat(high.scored_at)
    assert before <= scored_at <= datetime.now(timezone.utc)


def test_what_cannot_be_scored_is_told_and_the_others_are_kept() -> None:
    offer = read_offer((QUESTION, ["0.2 no", "nobody knows", "0.8 yes"]), None, "add")
    found, _ = drive(Scorer(scorer()).score(offer), {}, None)
    assert [one.answer for one in found.candidates] == ["0.2 no", "0.8 yes"]
    (failed,) = found.failed
    why = "the answer 'nobody knows' could not be scored: the similarity failed: "
    assert re.match(re.escape(why) + ".*could not convert", failed)
    away = Scorer(scorer(reference_models=model(reference=ValueError("no such model"))))
    found, _ = drive(away.score(read_offer((QUESTION, ["0.2", "0.3"]), None, "add")), {}, None)
    assert (list(found.candidates), len(found.failed)) == ([], 2)
    assert all("no such model" in failed for failed in found.failed)


def test_scores_that_come_with_answers_are_taken() -> None:
    asked = model()
    offer = read_offer((QUESTION, ["a", "b"], [1, -3]), "by hand", "add")
    for given in (Scorer(None), Scorer(scorer(reference_models=asked))):
        found, ledger = drive(given.score(offer), {}, None)
        assert [one.answer for one in found.candidates] == list(offer.answers)
        assert [one.score for one in found.candidates] == [1.0, -3.0]
        assert {one.scorer for one in found.candidates} == {given.name}
        assert {one.source for one in found.candidates} == {"by hand"}
        assert all(one.parts == {} for one in found.candidates)
        assert ledger.usage == {}
    assert asked.stages == []


def test_a_scorer_is_a_fewl() -> None:
    with pytest.raises(TypeError, match=r"expected a FEWL as scorer, got .*Scores of another kind"):
        Scorer("fewl")  # type: ignore[arg-type]  # on purpose


def test_a_scorers_name_tells_what_its_scores_depend_on() -> None:
    first = Scorer(scorer())
    assert Scorer(scorer()).name == first.name
    parts = {"reference_models", "pairs", "prompts", "similarity", "formula"}
    assert set(json.loads(first.basis)) == parts
    others = [
        scorer(contrary),
        scorer(n_answers=3),
        scorer(reference_models=[model(), model()]),
        scorer(n_wrong=3),
        scorer(divergence="js"),
        scorer(normalization="paper"),
        scorer(temperature=2.0),
        scorer(penalty=True),
        scorer(k_neighbors=3),
        scorer(max_neighbor_similarity=0.5),
        scorer(neighbor_choice="random"),
        scorer(min_pairs=1),
    ]
    names = {Scorer(one).name for one in others}
    assert len(names) == len(others)
    assert first.name not in names
    # The threshold only decides what passes, so it does not change the name.
    assert Scorer(scorer(threshold=0.1)).name == first.name
