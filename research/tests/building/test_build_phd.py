"""Test building PHD: passages are written, labelled in two stages, and read by PHD's reader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from demur_research import bench
from demur_research.building.phd import Bounds, Entity, cohen_kappa, draw
from demur_research.commands import run
from demur_research.datasets import phd, read_set
from publishers import dump
from support.fakes import ScriptedModel

ENTITIES = [
    {"entity": "Red Fox", "count": 99_999, "url": "https://example.org/Red_Fox"},
    {"entity": "Émile Zola", "count": 100_000},
    {"entity": "Grey Heron", "count": 1_000_000},
    {"entity": "Iron", "count": 1_000_001},
    {"entity": "Gold", "count": 7e9},
]


def said(messages: Sequence[BaseMessage]) -> str:
    """Return the entity that a passage is asked about."""
    (name,) = [one["entity"] for one in ENTITIES if f"about {one['entity']}:" in asked(messages)]
    return str(name)


def asked(messages: Sequence[BaseMessage]) -> str:
    return str(messages[-1].content)


class Desk:
    """Hold a folder with entities, and a model that writes about them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out, self.recording = folder / "labels.json", folder / "recording.jsonl"
        self.entities = dump(folder / "entities.jsonl", ENTITIES)
        self.says: dict[str, Any] = {}
        self.model = ScriptedModel(script=lambda stage, messages: self.reply(said(messages)))
        monkeypatch.setattr(bench, "resolve_model", lambda name: self.model)

    def reply(self, entity: str) -> Any:
        given = self.says.get(entity, f" {entity} is known. It is red.\n")
        if isinstance(given, Exception):
            raise given
        return given

    def build(self, *more: str) -> int:
        command = ["build", "phd", str(self.entities), "-o", str(self.out)]
        return run([*command, "-r", str(self.recording), *more])

    def held(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = json.loads(self.out.read_text(encoding="utf-8"))
        return found

    def label(self, *labels: tuple[str | None, str | None, str | None, Any]) -> int:
        """Fill in these labels in the order of the passages, and check them."""
        held = self.held()
        passages = [one for passages in held.values() for one in passages]
        for one, filled in zip(passages, labels, strict=True):
            one |= zip(("label_1", "label_2", "label", "wrong_part"), filled, strict=True)
        dump(self.out, held)
        return run(["build", "phd-labels", str(self.out)])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


RIGHT = ("factual", None, "factual", None)
WRONG = ("non-factual", "non-factual", "non-factual", "It is red.")
FIVE = [RIGHT, WRONG, ("unverifiable", "factual", "factual", ""), WRONG, RIGHT]


def test_passages_are_written_labelled_and_read(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.build() == 0
    out = capsys.readouterr().out
    assert "low\t1\t1\nmedium\t2\t2\nhigh\t2\t2\n" in out
    assert "5 calls" in out
    assert desk.label(*FIVE) == 0
    found = read_set(phd.DATA_SET, desk.out)
    told = {row.metadata["entity"]: row for row in found}
    assert told.keys() == {one["entity"] for one in ENTITIES}
    assert told["Red Fox"].metadata["domain"] == "low"
    assert told["Grey Heron"].metadata["domain"] == "medium"
    assert told["Gold"].metadata["domain"] == "high"
    assert [row.answers[0].hallucinated for row in found] == [False, True, False, True, False]
    assert told["Red Fox"].answers[0].text == "Red Fox is known. It is red."


def test_nobody_has_labelled_what_was_just_written(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.build() == 0
    assert desk.held()["wiki_10w"] == [
        {
            **{"entity": "Red Fox", "url": "https://example.org/Red_Fox", "count": 99_999},
            **{"AI": "Red Fox is known. It is red.", "label_1": None, "label_2": None},
            **{"label": None, "wrong_part": None},
        }
    ]
    with pytest.raises(ValueError, match="wiki_10w: row 1, label"):
        read_set(phd.DATA_SET, desk.out)
    assert run(["build", "phd-labels", str(desk.out)]) == 64
    told = " ".join(capsys.readouterr().err.split())
    assert "5 of 5 passages are not labelled as they have to be" in told
    assert "5 times label_1 is empty; 5 times label is empty" in told
    assert "the first: wiki_10w 1, Red Fox" in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("unverifiable", None, "factual", None), "label_2 is empty, and label_1 is unverifiable"),
        (
            ("unverifiable", "factual", "non-factual", "red"),
            "differs from the label that the stages give",
        ),
        (("non-factual", None, "non-factual", " "), "wrong_part is empty"),
        (("factual", None, "factual", "red"), "wrong_part is filled in, and label is factual"),
        (("true", None, "factual", None), "wiki_1y: row 2, label_1"),
    ],
)
def test_labels_that_are_missing_or_contradict_are_refused(
    desk: Desk, capsys: pytest.CaptureFixture[str], wrong: Any, told: str
) -> None:
    assert desk.build() == 0
    assert desk.label(*FIVE[:4], wrong) == 64
    err = " ".join(capsys.readouterr().err.split())
    assert told in err
    assert "wiki_1y" in err


def test_what_was_written_before_a_failure_is_not_asked_again(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.says["Iron"] = ValueError("the model fell over")
    assert desk.build() == 2
    assert not desk.out.exists()
    told = " ".join(capsys.readouterr().err.split())
    assert "1 of 5 passages could not be written" in told
    assert "the model fell over" in told
    before = len(desk.model.requests)
    desk.says.clear()
    assert desk.build() == 0
    assert [said(messages) for messages in desk.model.requests[before:]] == ["Iron"]
    assert sum(map(len, desk.held().values())) == 5


def test_passages_that_are_none_are_left_out_and_counted(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.says["Iron"] = " \n"
    desk.says["Gold"] = AIMessage("Gold is", response_metadata={"finish_reason": "length"})
    assert desk.build() == 0
    out = capsys.readouterr().out
    assert "high\t2\t0\n" in out
    assert "left out: 1 empty passages" in out
    assert "left out: 1 passages cut off at the token limit" in out
    assert desk.held()["wiki_1y"] == []


def test_labels_that_somebody_filled_in_are_not_replaced(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.build() == 0
    asked_by_now = len(desk.model.requests)
    assert desk.label(*FIVE) == 0
    assert desk.build("--seed", "1") == 64
    assert "exists already: name a new file" in " ".join(capsys.readouterr().err.split())
    assert len(desk.model.requests) == asked_by_now
    assert desk.held()["wiki_10w"][0]["label"] == "factual"


@pytest.mark.parametrize(
    ("held", "more", "told"),
    [
        ([{"entity": "A"}], [], "row 1, count: Field required"),
        (
            [{"entity": "A b", "count": 1}, {"entity": "A  b ", "count": 2}],
            [],
            "the entity 'A b' stands there 2 times",
        ),
        (ENTITIES, ["--replay"], "there is no recording"),
    ],
)
def test_bad_input_is_told_before_anything_is_asked(
    desk: Desk, capsys: pytest.CaptureFixture[str], held: Any, more: list[str], told: str
) -> None:
    dump(desk.entities, held)
    assert desk.build(*more) == 64
    assert told in " ".join(capsys.readouterr().err.split())
    assert not desk.model.requests


MANY = [Entity(entity=f"thing {at}", count=at) for at in range(300)]


def test_entities_are_drawn_by_the_seed_alone() -> None:
    bounds = Bounds(100, 200)
    one, again, other = (draw(MANY, 10, bounds, seed) for seed in (1, 1, 2))
    assert one == again == draw(MANY[::-1], 10, bounds, 1) != other
    assert {domain: len(found) for domain, found in one.items()} == {
        "low": 10,
        "medium": 10,
        "high": 10,
    }
    assert all(bounds.domain(entity.count) == domain for domain in one for entity in one[domain])


def test_kappa_is_what_its_definition_gives() -> None:
    # The 20 pairs are 9 yes-yes, 4 yes-no, 2 no-yes and 5 no-no. The share of equal pairs is 0.7.
    # By chance it is (13 * 11 + 7 * 9) / 400 = 0.515. Kappa is (0.7 - 0.515) / (1 - 0.515).
    pairs = [("y", "y")] * 9 + [("y", "n")] * 4 + [("n", "y")] * 2 + [("n", "n")] * 5
    assert cohen_kappa(pairs) == pytest.approx(0.185 / 0.485)
    assert cohen_kappa([]) is None
    assert cohen_kappa([("y", "y")] * 3) is None


def test_agreement_of_the_stages_is_counted(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.build() == 0
    capsys.readouterr()
    labels = [
        ("factual", "factual", "factual", None),
        ("factual", "non-factual", "non-factual", "It is red; no words of it"),
        ("unverifiable", "non-factual", "non-factual", "is known"),
        ("non-factual", "non-factual", "non-factual", "nowhere"),
        ("non-factual", None, "non-factual", "It is red."),
    ]
    assert desk.label(*labels) == 0
    out = capsys.readouterr().out
    assert "low\t1\t0\nmedium\t0\t2\nhigh\t0\t2\n" in out
    assert "unverifiable by the first stage: 1" in out
    assert "decided by both stages: 3, alike: 2, Cohen's kappa: 0.40" in out
    assert "wrong parts that are not in their passage's words: 2" in out
