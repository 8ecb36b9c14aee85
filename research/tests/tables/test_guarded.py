"""Test the table about what a guard buys: what users get, and what of that is counted."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, made, supporting, values
from colours import Apart, colour
from demur_research.bench import Result
from demur_research.datasets.pairs import digest
from demur_research.datasets.rows import Answer, LabelledRow
from demur_research.tables.guarded.questions import Asked
from demur_research.texts import FOLDER, rows_of
from support.fakes import isolated

RIGHT, WRONG, SILENT, DOUBTED, BELIEVED = range(5)
"""Things: what the chain says of their colours, or what the judge thinks of it."""
SUPPORT = {RIGHT: 0.9, WRONG: 0.3, DOUBTED: 0.4, BELIEVED: 0.8}


class Spread(Apart):
    """Embed texts apart, and none as near as another to a third, so that an order is certain."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        noises = [random.Random(text) for text in texts]
        vectors = zip(super().embed_documents(texts), noises, strict=True)
        return [[value + noise.random() / 9 for value in vector] for vector, noise in vectors]


@pytest.fixture(autouse=True)
def _spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demur_research.bench.MiniLM", Spread)


def rows() -> dict[str, list[LabelledRow]]:
    """Return rows of the three sets: questions about the colours of five things."""

    def row(at: int, said: str, wrong: bool) -> LabelledRow:
        claim = f"Which colour has thing {at}? {said}"
        texts = (f"Thing {at} is {colour(at)}.It is for sale.",)
        metadata = {"dataset": "halueval_qa"}
        return LabelledRow(f"{at} {wrong}", None, (Answer(claim, wrong),), texts, str(at), metadata)

    pairs = [row(at, colour(at + wrong), wrong) for at in range(5) for wrong in (False, True)]
    beside = LabelledRow("q", "Why?", (Answer("So", False, "right"),), ("Thing 7 is old.",))
    return {"aggrefact": pairs, "halueval-qa": [beside]}


def says(stage: str, messages: Sequence[BaseMessage]) -> str | AIMessage:
    """Answer and judge as the things' names say; a repair has the right colour of `DOUBTED`."""
    if stage == "claim":
        claim = isolated("claim", messages)
        at = int(re.findall(r"\d", claim)[0])
        return supporting(0.9 if "surely" in claim else SUPPORT[at])
    asked = str(messages[-1].content)
    at = int(re.findall(r"thing (\d)", asked)[-1])
    if at == SILENT:
        return "I don't know."
    if stage == "repair":
        return f"Thing {at} is surely {colour(at)}."
    return f"Thing {at} is {colour(at + (at in (WRONG, BELIEVED)))}."


def table(tmp_path: Path, **options: str) -> Result:
    given = {"sets": "halueval", "arms": "local,local with recoveries", **options}
    model = LocalJudge(script=says)
    return made("guarded", tmp_path / "r", model, rows(), options=given)


def test_what_users_get_is_counted_and_makes_up_the_whole(tmp_path: Path) -> None:
    found = table(tmp_path)
    # Right, wrong, refused although the answer was there, and refused; the changes, and the AUROC.
    assert values(found, "no guard") == [40, 40, 20, 0, None, None, None]
    assert values(found, "local") == [20, 20, 60, 0, -20, -20, 0.75]
    assert values(found, "local with recoveries") == [60, 20, 20, 0, -20, 20, 0.75]
    calls = [row.spent and row.spent.calls for row in found.rows[:2]]
    assert calls == [1, 1.8]  # "I don't know." is not judged
    assert [values(found, f"local, limit {limit}")[:2] for limit in (0.25, 0.5, 0.9)] == [
        *([40, 40], [20, 20], [20, 0])
    ]
    replayed = {"sets": "halueval", "arms": "local,local with recoveries"}
    assert made("guarded", tmp_path / "r", None, rows(), options=replayed) == found


def test_the_notes_say_what_a_judge_stops_and_what_recoveries_bring(tmp_path: Path) -> None:
    notes = "\n".join(table(tmp_path).notes)
    assert "local: stops 50% of the chain's wrong answers and 50% of its right ones" in notes
    assert "in more than 50% of its answers; here it errs in 50%" in notes
    assert "local with recoveries: repair was tried 2 times, and 2 right and 0 wrong" in notes
    assert "read one by one" not in notes


def test_an_answer_that_its_reader_marked_otherwise_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = f"Which colour has thing {WRONG}?"
    (tmp_path / "answers_read.jsonl").write_text(
        json.dumps({"key": digest(question, f"Thing {WRONG} is blue."), "found": "right"})
    )
    monkeypatch.setattr("demur_research.tables.guarded.FOLDER", tmp_path)
    told = (
        "Of 1 answers that were read one by one, the rules mark 1 otherwise: 1 right marked wrong"
    )
    assert told in table(tmp_path).notes


def test_a_set_has_rows_of_its_own_if_it_was_asked(tmp_path: Path) -> None:
    found = table(tmp_path, by="set")
    assert values(found, "local, halueval") == values(found, "local")
    assert not [row.name for row in found.rows if "everyday" in row.name]


def test_texts_that_no_question_is_about_are_refused(tmp_path: Path) -> None:
    row = LabelledRow("a", None, (Answer("So.", False),), ("Other text.",), "g")
    sets = {"everyday": [row]}
    with pytest.raises(ValueError, match="no question is about the texts of everyday"):
        made("guarded", tmp_path / "r", LocalJudge(script=says), sets, options={"sets": "everyday"})


def test_the_picture_has_the_arms_and_stands_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "p.svg"
    table(tmp_path, picture=str(path))
    drawn = path.read_text()
    assert drawn.startswith("<svg")
    for said in ("no guard", "local", "local, limit moved"):
        assert f">{said}</text>" in drawn
    for name in re.findall(r"var\((--[\w-]+)\)", drawn):
        assert drawn.count(f"{name}: #") == 2  # light and dark


def test_a_picture_in_no_folder_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    model = LocalJudge(script=says)
    options = {"sets": "halueval", "picture": str(tmp_path / "nowhere" / "p.svg")}
    with pytest.raises(ValueError, match=r"picture: there is no folder .+nowhere"):
        made("guarded", tmp_path / "r", model, rows(), options=options)
    assert not model.requests


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("It costs 4.50 euros.", "right"),
        ("It costs\n4.50 Euros", "right"),
        ("It costs 14.50 euros.", "wrong"),
        ("It costs 4.50 euros, or 6 euros on Sundays.", "wrong"),
        ("It costs 50 euros.", "wrong"),
        ("The texts do not say.", "refused"),
        ("I don't know.", "refused"),
    ],
)
def test_an_answer_is_right_if_it_holds_the_value_and_no_other(answer: str, mark: str) -> None:
    asked = Asked("x", "What does a ticket cost?", ("4.50 euros", "4.50 €"), ("6 euros",), ("A",))
    assert asked.mark(answer) == mark


def test_whether_the_answer_was_there_is_told_by_the_passages_that_hold_it() -> None:
    asked = Asked("x", "Since when?", ("1793",), (), ("Opened in 1793.", "It is large."))
    assert asked.is_answered_by(["Opened in 1793.", "Another of 1793."])
    assert not asked.is_answered_by(["It is large.", "Another of 1793."])
    both = Asked("x", "Are both large?", ("yes",), (), ("A is large.", "B is large."))
    assert both.is_answered_by(["B is large.", "A is large."])
    assert not both.is_answered_by(["B is large."])
    assert not Asked("x", "Who?", (), (), ("A",)).is_answered_by(["A"])


def test_every_question_can_be_told_right_from_wrong() -> None:
    rows = rows_of(FOLDER / "questions.jsonl")
    assert len({row["question"] for row in rows}) == len(rows)
    for row in rows:
        asked = Asked("everyday", row["question"], (*row["answers"],), (*row["others"],), ())
        right, wrong = (f"It is {', '.join(row[forms])}." for forms in ("answers", "others"))
        if row["answers"]:
            assert asked.mark(right) == "right", row["id"]
            assert asked.mark(wrong) == asked.mark(f"{right} {wrong}") == "wrong", row["id"]


def test_the_recorded_run_gives_its_table_again_without_a_model() -> None:
    recording = Path(__file__).parents[2] / "recorded" / "guarded.jsonl.gz"
    command = [sys.executable, "-m", "demur_research", "guarded", "--replay", "-r", str(recording)]
    command += ["-O", "sets=everyday", "--limit", "20", "--format", "json"]
    # "small" says a little else on other processors, so what it refuses cannot be tried again.
    command += ["-O", "arms=careful prompt,careful prompt with local,small,local with recoveries"]
    env = {name: value for name, value in os.environ.items() if name != "DEMUR_SECRET"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    shares = {
        row["row"]: [figure["value"] for figure in row["figures"][:4]]
        for row in json.loads(done.stdout)["rows"]
    }
    assert shares["no guard"] == [50, 50, 0, 0]
    assert shares["careful prompt"] == [40, 40, 20, 0]
    assert shares["careful prompt with local"] == [30, 20, 35, 15]
    assert shares["local with recoveries"] == [30, 20, 35, 15]
    assert all(sum(row) == pytest.approx(100) for row in shares.values())
