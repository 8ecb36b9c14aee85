"""Test the table about everyday texts, with scripted judges, and the rows that come with demur."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benches import LocalJudge, Small, first_token, made, row_of, supporting, values
from demur_research.bench import Result
from demur_research.commands import run
from demur_research.datasets import DATA_SETS, read
from demur_research.datasets.finding import find
from demur_research.datasets.rows import LabelledRow
from demur_research.tables.judges import AT_BEST
from support.fakes import ScriptedModel, isolated

FERRY = "The ferry sails at noon and takes cars. It does not sail on Sundays."
LIBRARY = "The library lends ten books for a month. Late books cost a euro."
STOVE = "The stove must cool for an hour before it is cleaned. Use a soft cloth."
LINES = [
    ("The ferry takes cars.", FERRY, "Entailment", None, "travel"),
    ("The ferry sails every day of the week.", FERRY, "Contradiction", None, "travel"),
    ("The ferry sells hot food on the way.", FERRY, "Neutral", None, "travel"),
    ("A month.", LIBRARY, "Entailment", "For how long does the library lend books?", "rules"),
    ("The library lends twelve books for a month.", LIBRARY, "Contradiction", None, "rules"),
    ("The stove must cool for an hour.", STOVE, "Entailment", None, None),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of claims; the last line names no kind of text."""
    path = tmp_path / "lines.jsonl"
    rows = []
    for claim, passages, label, question, kind in LINES:
        row = {"claim": claim, "passages": passages, "label": label, "question": question}
        rows.append(row | ({"kind": kind} if kind else {}))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _says(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Support all but what the text does not say; be wrong about twelve books amid other texts."""
    claim, reference = isolated("claim", messages), isolated("reference", messages)
    if "twelve" in claim:
        return supporting(0.9 if FERRY in reference or STOVE in reference else 0.2)
    return supporting(0.1 if "hot food" in claim else 0.8)


def local(path: Path, file: Path, **options: str) -> Result:
    model = LocalJudge(script=_says)
    return made("everyday", path, model, {"everyday": file}, options={"judges": "local", **options})


def test_labels_and_kinds_of_text_have_rows_of_their_own(tmp_path: Path, file: Path) -> None:
    found = local(tmp_path / "r", file, others="0")
    third = 100 / 3
    assert values(found, "local") == pytest.approx([7.5 / 9, third, 0, None])
    # Each label's wrong claims stand beside all right ones.
    assert values(found, "local, contradicted") == pytest.approx([4.5 / 6, 50, 0, None])
    assert values(found, "local, not said") == [1, 0, 0, None]
    assert values(found, "local, travel")[1:] == [50, 0, None]
    assert values(found, "local, rules")[1:] == [0, 0, None]
    assert values(found, "local, other")[1:] == [None, 0, None]
    assert [row.name for row in found.rows if row.name.startswith("local")] == [
        *("local", "local, contradicted", "local, not said"),
        *("local, travel", "local, rules", "local, other"),
    ]
    judged = row_of(found, "local")
    assert (judged.items, judged.undetermined) == (6, 0)
    assert judged.spent is not None
    assert judged.spent.calls == 1
    assert row_of(found, AT_BEST).floor


def test_a_verdict_that_moves_with_other_texts_beside_is_counted(
    tmp_path: Path, file: Path
) -> None:
    found = local(tmp_path / "r", file, others="2")
    assert values(found, "local, 2 other texts")[1:] == pytest.approx([200 / 3, 0, 100 / 6])
    again = made(
        "everyday",
        tmp_path / "r",
        None,
        {"everyday": file},
        options={"judges": "local", "others": "2"},
    )
    assert again == found


def test_a_model_that_serves_a_yes_or_no_judge_is_asked_with_its_template(
    tmp_path: Path, file: Path
) -> None:
    def says(stage: str, messages: Sequence[BaseMessage]) -> AIMessage:
        document, claim = str(messages[-1].content).removeprefix("Document: ").split("\nClaim: ")
        assert document in (FERRY, LIBRARY, STOVE)
        yes = "takes cars" in claim or "A month" in claim or "cool" in claim
        return first_token({"Yes": math.log(0.8), "No": math.log(0.2)} if yes else {"No": -0.1})

    found = made(
        "everyday",
        tmp_path / "r",
        ScriptedModel(script=says),
        {"everyday": file},
        options={"judges": "bespoke-minicheck", "others": "0"},
    )
    assert values(found, "bespoke-minicheck") == [1, 0, 0, None]


def test_each_judge_gets_the_question_as_an_answer_has_it(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Small(lambda reference, claim: 0.9).stands_in(monkeypatch)
    found = made(
        "everyday",
        tmp_path / "r",
        LocalJudge(script=_says),
        {"everyday": file},
        options={"judges": "small,cascade", "others": "0"},
    )
    assert "For how long does the library lend books? A month." in {
        claim for _, claim in small.asked
    }
    assert row_of(found, "small").items == row_of(found, "cascade").items == 6


def test_the_rows_that_come_with_demur_are_read_without_a_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEMUR_DATA", str(tmp_path))
    known = DATA_SETS["everyday"]
    found = read("everyday")
    assert len(found) == known.published_rows == 739
    assert len({row.group for row in found}) == 44
    kinds = {str(row.metadata["kind"]) for row in found}
    assert {"support", "policy", "product", "agent", "API", "household"} < kinds
    assert all(_labelled(row) for row in found)


def _labelled(row: LabelledRow) -> bool:
    (answer,) = row.answers
    return answer.hallucinated is (answer.label != "Entailment")


def test_the_command_says_that_they_come_with_demur(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEMUR_DATA", str(tmp_path))
    assert run(["datasets", "everyday"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "everyday.jsonl.gz, which comes with demur" in told
    assert "by hand" not in told


def test_a_path_goes_before_the_rows_that_come_with_demur(file: Path) -> None:
    assert find(DATA_SETS["everyday"], file) == {"everyday.jsonl.gz": file}
    assert len(read("everyday", file)) == len(LINES)


def test_a_line_with_another_label_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    line = {"claim": "It sails.", "passages": FERRY, "label": "Maybe"}
    path.write_text(json.dumps(line), encoding="utf-8")
    with pytest.raises(ValueError, match=r"lines\.jsonl.*label"):
        read("everyday", path)
