"""What a recording of PHD says of the methods is what a replay says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur import Evaluation
from demur_research.datasets.phd import LabelledPassage, read_passages, read_phd_records
from demur_research.methods import METHODS, items, judges, judgings
from demur_research.recorder import Line, open_recording, read
from demur_research.replay import Cost, Judging, replay
from demur_research.runner import run
from publishers import as_lines, say
from support.fakes import ScriptedModel

EVERY = list(METHODS)
USED = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}


def counted(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(say(stage, messages), usage_metadata=USED)


@pytest.fixture
def passages(tmp_path: Path) -> tuple[LabelledPassage, ...]:
    return read_passages(as_lines(tmp_path)[0])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def record(
    passages: Sequence[LabelledPassage],
    methods: Sequence[str],
    script: Callable[[str, Sequence[BaseMessage]], Any],
    out: Path,
) -> list[Line]:
    """What the methods find, read again."""
    every = items(passages)
    with open_recording(out, every, "one") as recording:
        run(recording, every, judges(methods, ScriptedModel(script=script)))
    return list(read(out, every).values())


def by_name(judged: Sequence[Judging]) -> dict[tuple[str, str | None], Judging]:
    return {(one.method, one.matcher): one for one in judged}


def test_the_same_replies_are_judged_as_in_a_replay(
    tmp_path: Path, passages: tuple[LabelledPassage, ...], out: Path
) -> None:
    found = by_name(list(judgings(passages, record(passages, EVERY, say, out), 90)))
    recorded = read_phd_records(tmp_path / "records_someone.jsonl", passages)
    replayed = by_name(replay(passages, recorded, 90))
    # A reply that is there was not compared by a model, and the other methods said other things.
    of_names = {key for key in replayed if key[1] not in (None, "llm")}
    assert len(of_names) == 8
    assert {key for key in found if key[1]} == of_names
    for key in {*of_names, ("all-false", None)}:
        assert found[key].verdicts == replayed[key].verdicts, key
    wrong = {one.key: one.entity == "Iron" for one in passages}
    assert found["zero-shot", None].verdicts == wrong
    assert set(found["lmvslm", None].verdicts.values()) == {False}


def test_the_percentage_counts_for_lists_alone(
    passages: tuple[LabelledPassage, ...], out: Path
) -> None:
    held = record(passages, ["qg", "em"], say, out)
    strict, lax = (by_name(list(judgings(passages, held, least))) for least in (90, 80))
    changed = {
        (*key, passage)
        for key, one in strict.items()
        for passage, verdict in one.verdicts.items()
        if lax[key].verdicts[passage] != verdict
    }
    # The first reply gives 80; the published decision has a percentage of its own.
    assert changed == {("em", name, "phd-0") for name in ("exact", "normalized", "wikibio_name")}


def test_a_reply_without_a_share_is_decided_by_the_published_decision_alone(
    passages: tuple[LabelledPassage, ...], out: Path
) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        return say(stage, messages).partition("\nPercentage")[0]

    held = record(passages[:1], ["em"], silent, out)
    found = by_name(list(judgings(passages, held, 90)))
    verdicts = {matcher: one.verdicts["phd-0"] for (_, matcher), one in found.items()}
    undecided = dict.fromkeys(["exact", "wikibio_name", "normalized"], None)
    assert verdicts == {**undecided, "published_em": False}


def test_what_is_undetermined_is_decided_by_no_matcher(
    passages: tuple[LabelledPassage, ...], out: Path
) -> None:
    def silent(stage: str, messages: Sequence[BaseMessage]) -> str:
        mute = stage == "access" and "umber 2" in str(messages[-1].content)
        return "" if mute or stage == "verdict" else say(stage, messages)

    held = record(passages, ["qg", "zero-shot"], silent, out)
    found = by_name(list(judgings(passages, held, 90)))
    assert found["zero-shot", None].verdicts == {one.key: None for one in passages}
    for key in found.keys() - {("zero-shot", None)}:
        undecided = [name for name, verdict in found[key].verdicts.items() if verdict is None]
        assert undecided == ["phd-2"], key


def test_a_method_costs_what_its_passages_cost_on_the_mean(
    passages: tuple[LabelledPassage, ...], out: Path
) -> None:
    held = record(passages, EVERY, counted, out)
    spent = {one.method: one.cost for one in judgings(passages, held, 90)}
    tokens = {method: cost and cost.tokens for method, cost in spent.items()}
    # LM vs LM: questions, testimony, whether there are more, and the verdict.
    calls = {"qg": 2, "em": 2, "zero-shot": 1, "lmvslm": 4, "all-false": 0}
    assert tokens == {method: 35.0 * count for method, count in calls.items()}
    seconds = [
        line.result["evaluation"]["usage"]["seconds"] for line in held if line.configuration == "qg"
    ]
    assert spent["qg"] == Cost(70.0, pytest.approx(sum(seconds) / 5))
    assert min(seconds) > 0


def test_what_is_drawn_depends_on_the_texts_alone(passages: tuple[LabelledPassage, ...]) -> None:
    everything = items(passages)
    assert sorted((item.value for item in everything), key=lambda one: one.key) == list(passages)
    for most in range(1, 7):
        assert items(passages[::-1], most) == everything[:most]


def test_every_method_judges(passages: tuple[LabelledPassage, ...], out: Path) -> None:
    held = record(passages[:1], EVERY, say, out)
    assert [line.configuration for line in held] == EVERY
    found = [Evaluation.model_validate(line.result["evaluation"]) for line in held]
    assert not any(one.undetermined for one in found)
