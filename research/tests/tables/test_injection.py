"""Test texts that argue with the judge, counted beside neutral ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, first_token, made, row_of
from demur.local import JUDGE_FILES, find_judge
from demur_research.bench import Row
from demur_research.tables import injection
from demur_research.texts.injections import INJECTIONS, SETS
from support.fakes import ScriptedModel, isolated


def credulous(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Support every claim that asks to be supported."""
    return "Entailment" if "Entailment" in isolated("claim", messages) else "Neutral"


def value(row: Row) -> float | None:
    assert row.figures[0] is not None
    return row.figures[0].value


def test_texts_that_talk_the_judge_round_are_counted_and_bland_ones_beside_them(
    tmp_path: Path,
) -> None:
    path, options = tmp_path / "r.jsonl", {"modes": "per_claim", "show": "texts"}
    model = ScriptedModel(script=credulous)
    found = made(injection.INJECTION, path, model, limit=24, options=options)
    talked = [note for note in found.notes if "behind the claim, passed: " in note]
    behind = row_of(found, "per_claim, behind the claim")
    assert behind.items == 24
    assert 0 < len(talked) < 24
    assert value(behind) == pytest.approx(100 * len(talked) / 24)
    assert value(row_of(found, "per_claim, behind the passage")) == 0
    bland = row_of(found, "per_claim, behind the claim: bland sentences")
    assert bland.floor
    assert value(bland) == 0
    assert found.notes[0].startswith("24 texts of ")
    assert made(injection.INJECTION, path, limit=24, options=options) == found


def test_cases_that_pass_without_a_text_tell_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(script=lambda stage, messages: "Entailment")
    options = {"modes": "per_claim", "controls": "no"}
    found = made(injection.INJECTION, tmp_path / "r", model, limit=4, options=options)
    assert [(row.items, value(row)) for row in found.rows] == [(0, None)] * 2
    assert "per_claim: 8 of 8 cases left out, which pass without a text." in found.notes


def test_a_text_is_tried_only_with_cases_that_fail_without_it(tmp_path: Path) -> None:
    """The judge passes whatever is about a ferry or an opera."""

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        about = isolated("reference", messages)
        return "Entailment" if "ferry" in about or "opera" in about else "Contradiction"

    options = {"modes": "per_claim", "controls": "no", "texts": "one-token"}
    found = made(injection.INJECTION, tmp_path / "r", ScriptedModel(script=script), options=options)
    assert [(row.items, value(row)) for row in found.rows] == [(30, 0)] * 2
    options["cases"] = "all"
    found = made(injection.INJECTION, tmp_path / "r", ScriptedModel(script=script), options=options)
    assert [(row.items, value(row)) for row in found.rows] == [(30 * 6, 0)] * 2
    assert "per_claim: 2 of 8 cases left out, which pass without a text." in found.notes


def test_the_texts_of_one_set_keep_their_cases() -> None:
    both = injection.choose([*SETS], None)
    assert both == [*enumerate(INJECTIONS)]
    assert [pair for name in SETS for pair in injection.choose([name], None)] == both
    assert injection.choose(["general"], 12)[:2] == [both[0], both[6]]


def obliging(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Support every claim that asks to be supported, with probabilities."""
    told = "Entailment" in isolated("claim", messages)
    first = ["Ent", "Neutral", "Contr"] if told else ["Neutral", "Ent", "Contr"]
    return first_token(dict(zip(first, map(math.log, (0.98, 0.01, 0.01)), strict=True)))


def test_the_adapter_is_asked_as_the_local_model_asks_it_and_recorded_by_its_hash(
    tmp_path: Path,
) -> None:
    pytest.importorskip("demur_judge")
    path, options = tmp_path / "r.jsonl", {"modes": "adapter", "show": "texts", "controls": "no"}
    model = LocalJudge(script=obliging)
    found = made(injection.INJECTION, path, model, limit=8, options=options)
    assert {str(given["extra_body"]) for given in model.given} == {str({"lora": "ours"})}
    assert all("adapter" not in given for given in model.given)
    assert value(row_of(found, "adapter, behind the passage")) == 0
    assert 0 < (value(row_of(found, "adapter, behind the claim")) or 0) < 100
    assert "(0.010 without, 0.980 with)" in found.notes[-1]
    assert any(find_judge(file).sha256 in path.read_text() for file in JUDGE_FILES)
    assert made(injection.INJECTION, path, limit=8, options=options) == found  # without a model


def test_a_model_without_an_adapter_is_refused_as_by_the_evaluator(tmp_path: Path) -> None:
    options = {"modes": "adapter"}
    model = ScriptedModel(script=credulous)
    with pytest.raises(ValueError, match="needs the model 'local'"):
        made(injection.INJECTION, tmp_path / "r", model, limit=1, options=options)


@pytest.mark.parametrize(("model", "more"), [(ScriptedModel, []), (LocalJudge, ["adapter"])])
def test_every_judge_that_there_is_has_its_rows(
    tmp_path: Path, model: Callable[..., ScriptedModel], more: Sequence[str]
) -> None:
    pytest.importorskip("demur_judge")
    options = {"controls": "no", "places": "claim"}
    asked = model(script=credulous)
    found = made(injection.INJECTION, tmp_path / "r", asked, limit=1, options=options)
    modes = ["small", *more, "logprobs", "joint", "per_claim"]
    assert [row.name for row in found.rows] == [f"{mode}, behind the claim" for mode in modes]
