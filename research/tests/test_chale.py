"""The benchmark on CHALE: what is chosen, recorded, read again and printed."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage

from demur import DemurError, Evaluation
from demur.evaluators import NeighborStore, Pairs
from demur.evaluators.fewl.neighbors import KnownQuestion
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.similarity import resolve_similarity
from demur_research import chale
from demur_research.agreement import Agreement, share_of_yes
from support.fakes import ScriptedModel, isolated
from support.openai_server import Answer, openai_server


class Apart(Embeddings):
    """Questions that are not alike: each number in a direction of its own."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(int(text[-1]) == at) for at in range(10)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


COLOURS = ("red", "green", "blue", "grey")


def _write_data(folder: Path, questions: int = 4) -> None:
    (folder / "chale").mkdir()
    rows: list[dict[str, Any]] = [
        {
            "id": f"c{at}",
            "question": f"which colour has thing {at}",
            "short_answer": COLOURS[at % 4],
            "non_hallu": f"{COLOURS[at % 4]} . It is painted .",
            "half_hallu": f"{COLOURS[(at + 1) % 4]} . It is painted .",
            "hallu": f"{COLOURS[(at + 2) % 4]} . It was found .",
            "flags": {"markup_in_answers": False, "half_equals_hallu": False},
        }
        for at in range(questions)
    ]
    unusable = [
        {**rows[0], "id": name, "flags": {**rows[0]["flags"], name: True}}
        for name in ("markup_in_answers", "half_equals_hallu")
    ]
    text = "".join(json.dumps(row) + "\n" for row in [*rows, *unusable])
    (folder / "chale" / "chale.jsonl").write_text(text)


def _reply(question: str, pairs: bool) -> str:
    colour = COLOURS[int(question.rsplit(" ", 1)[1]) % 4]
    if pairs:
        wrong = [other for other in COLOURS if other != colour]
        return "\n".join(
            f"{at}. Wrong Answer: It is {one}.\n{at}. Non-Wrong Answer: {one} is no part of it."
            for at, one in enumerate(wrong, start=1)
        )
    return f"1. {colour} . It is painted .\n2. The thing is {colour}."


def _script(stage: str, messages: Sequence[BaseMessage]) -> str:
    return _reply(isolated("question", messages), stage == "pairs")


def _references(model: ScriptedModel) -> ReferenceModels:
    return ReferenceModels((model,), model, 2, 3)


def test_rows_with_markup_or_two_equal_wrong_answers_are_left_out(tmp_path: Path) -> None:
    _write_data(tmp_path)
    found = chale.items(tmp_path)
    assert sorted(item.key for item in found) == ["c0", "c1", "c2", "c3"]
    assert chale.items(tmp_path) == found
    assert [item.key for item in chale.items(tmp_path, seed=3)] != [item.key for item in found]


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    _write_data(tmp_path)
    item = chale.items(tmp_path)[0]
    references = _references(ScriptedModel(script=_script))
    row = json.loads(json.dumps(chale.record(item, references)))

    asked = chale.said(item, row, references)

    assert asked.question == item.question
    assert len(asked.answers) == 2
    assert asked.pairs is not None
    assert len(asked.pairs.usable) == 3
    with pytest.raises(DemurError, match="another question"):
        chale.said(item, {**row, "question_sha256": "0"}, references)
    with pytest.raises(DemurError, match="cannot be read"):
        chale.said(item, {**row, "answers": {"reply": " ", "truncated": False}}, references)


def test_other_pairs_are_recorded_beside_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_data(tmp_path)
    denied, right = (tmp_path / f"{name}.jsonl" for name in ("denied", "right"))
    asked = ScriptedModel(script=_script)
    monkeypatch.setattr(chale, "resolve_model", lambda name: asked)
    record = ["--data", str(tmp_path), "--n-answers", "2", "--n-wrong", "3", "--record", "2"]
    assert chale.main([*record, "--recording", str(denied)]) == 0
    assert sorted(asked.stages) == ["pairs"] * 2 + ["reference"] * 2
    others = ["--recording", str(right), "--answers", str(denied), "--pairs", "right"]
    assert chale.main([*record, *others]) == 0
    assert asked.stages[4:] == ["pairs"] * 2
    first, second = (list(chale.recorded(path)) for path in (denied, right))
    assert [row["answers"] for row in first] == [row["answers"] for row in second]
    said = [
        str(request[0].content)
        for stage, request in zip(asked.stages, asked.requests, strict=True)
        if stage == "pairs"
    ]
    assert all("3 wrong answers" in system for system in said)
    assert said[0] == said[1] != said[2] == said[3]


def test_agreement_is_recorded_apart_and_its_tables_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    monkeypatch.setattr(chale, "NeighborStore", partial(NeighborStore, embedding=Apart()))

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "agreement":
            return "\n".join(f"{at}. {'yes' if at % 2 else 'no'}" for at in range(1, 7))
        if stage == "pairs" and isolated("question", messages).endswith("0"):
            return "1. Wrong Answer: It is blue.\n1. Non-Wrong Answer: It is not."  # too few
        return _script(stage, messages)

    asked = ScriptedModel(script=script)
    monkeypatch.setattr(chale, "resolve_model", lambda name: asked)
    recording, agreement = (tmp_path / name for name in ("recording.jsonl", "agreement.jsonl"))
    common = ["--data", str(tmp_path), "--recording", str(recording)]
    common += ["--n-answers", "2", "--n-wrong", "3"]
    assert chale.main([*common, "--record", "4"]) == 0
    assert chale.main([*common, "--record", "4", "--agreement", str(agreement)]) == 0
    assert asked.stages.count("agreement") == 2 * 3
    replies = {row["id"]: len(row["agreement"]) for row in chale.recorded(agreement)}
    assert replies == {"c0": 0, "c1": 2, "c2": 2, "c3": 2}

    tables = [*common, "--similarity", "rouge", "--config", "fewl-agreement"]
    with pytest.raises(SystemExit):
        chale.main(tables)
    assert "fewl-agreement needs --agreement" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="too few usable pairs"):
        assert chale.main([*tables, "--agreement", str(agreement)]) == 0
    assert "| fewl-agreement |" in capsys.readouterr().out

    names = ("single", "fewl-uniform", "fewl-agreement")
    few = {name: chale.CONFIGURATIONS[name] for name in names}
    monkeypatch.setattr(chale, "CONFIGURATIONS", few)
    assert chale.main([*common, "--similarity", "rouge"]) == 0
    printed = capsys.readouterr().out
    assert "| single |" in printed
    assert "| fewl-agreement |" not in printed


def test_questions_without_a_score_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    monkeypatch.setattr(chale, "NeighborStore", partial(NeighborStore, embedding=Apart()))

    def script(stage: str, messages: Sequence[BaseMessage]) -> str:
        if stage == "pairs" and isolated("question", messages).endswith("0"):
            return "1. Wrong Answer: It is blue.\n1. Non-Wrong Answer: It is not."  # too few
        return _script(stage, messages)

    monkeypatch.setattr(chale, "resolve_model", lambda name: ScriptedModel(script=script))
    common = ["--data", str(tmp_path), "--recording", str(tmp_path / "recording.jsonl")]
    common += ["--n-answers", "2", "--n-wrong", "3"]
    assert chale.main([*common, "--record", "4"]) == 0
    assert chale.main([*common, "--similarity", "rouge", "--config", "single", "single-best"]) == 0
    printed = capsys.readouterr().out
    assert "| single |" in printed
    assert "| single-best (1 undetermined) |" in printed


def test_each_order_misses_what_the_other_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    assert chale.main(["--data", str(tmp_path), "--orders"]) == 0
    first, *printed = capsys.readouterr().out.splitlines()
    assert first.startswith("4 questions")
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in printed if "|" in line}
    # "red . It is painted ." and "blue . It was found .": four words each, of which one is common.
    assert rows["| the right one, then a wrong one"][:2] == ["1.000", "0.625"]
    assert rows["| the right one's first half"][:2] == ["0.500", "1.000"]
    assert rows["| a wrong one"][:2] == ["0.250", "0.250"]


def test_a_table_needs_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_data(tmp_path)
    with pytest.raises(SystemExit):
        chale.main(["--data", str(tmp_path)])
    assert "--recording is missing" in capsys.readouterr().err


def test_a_failing_model_is_no_recording(tmp_path: Path) -> None:
    _write_data(tmp_path)

    def broken(stage: str, messages: Sequence[BaseMessage]) -> str:
        raise ValueError("out of order")

    with pytest.raises(DemurError, match="out of order"):
        chale.record(chale.items(tmp_path)[0], _references(ScriptedModel(script=broken)))


def test_the_floor_is_the_share_of_words_that_the_question_has() -> None:
    item = chale.Item(
        "c",
        "Who wrote it?",
        "Ann",
        {"non_hallu": "Ann wrote it.", "hallu": "...", "half_hallu": "Nobody."},
    )
    assert chale.floor(item, "non_hallu") == pytest.approx(2 / 3)
    assert chale.floor(item, "half_hallu") == 0
    assert chale.floor(item, "hallu") == 0


def test_recording_goes_on_where_it_stopped_and_the_table_needs_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    recording = tmp_path / "recording.jsonl"
    monkeypatch.setattr(chale, "NeighborStore", partial(NeighborStore, embedding=Apart()))
    common = ["--data", str(tmp_path), "--n-answers", "2", "--n-wrong", "3"]

    def serve(request: dict[str, Any], number: int) -> Answer:
        text = request["messages"][-1]["content"]
        question = next(line for line in text.splitlines() if line.startswith("which"))
        return Answer(_reply(question, "wrong" in text.splitlines()[-1]))

    with openai_server(serve) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        record = [*common, "--recording", str(recording), "--model", "openai:m"]
        assert chale.main([*record, "--record", "2"]) == 0
        assert chale.main([*record, "--record", "4"]) == 0
        requests = len(server.requests)
    assert requests == 2 * 4

    packed = tmp_path / "recording.jsonl.gz"
    packed.write_bytes(gzip.compress(recording.read_bytes()))
    capsys.readouterr()
    names = ["single", "fewl", "fewl-ideal", "fewl-js-random-mean-one"]
    tables = [*common, "--recording", str(packed), "--similarity", "rouge", "--config", *names]
    assert chale.main(tables) == 0
    printed = capsys.readouterr().out
    assert "expertise by pairs and by labels: " in printed
    assert "4 questions; 2.0 answers each, 2.0 of them distinct; 3.0 usable pairs each" in printed
    rows = {line.split(" | ")[0].strip("| "): line for line in printed.splitlines()}
    assert "| 100.0 [100.0, 100.0] | 0 | 100.0 [100.0, 100.0] | 0 |" in rows["single"]
    assert {*names, "the penalty alone"} <= set(rows)


def test_the_penalty_alone_prefers_what_is_unlike_other_answers() -> None:
    lazy, fresh, first = (
        Evaluation(name="fewl", details={"penalties": penalties})
        for penalties in ([0.5, 0.75], [0.25, 0.5], None)
    )
    assert chale.unlike_others(lazy) == -0.625
    assert chale.unlike_others(fresh) == -0.375
    assert chale.unlike_others(first) is None


def test_expertise_by_pairs_is_held_against_that_by_labels() -> None:
    near = {"ann": {"corrected", "right"}, "bob": {"wrong", "half", "false"}}
    similarity = resolve_similarity(lambda pairs: [float(b in near[a]) for a, b in pairs])
    labelled = {"non_hallu": "right", "half_hallu": "half", "hallu": "false"}
    item = chale.Item("c", "Who?", "Ada", {**labelled})
    good, bad = Pairs(usable=(("wrong", "corrected"),)), Pairs(usable=(("corrected", "wrong"),))
    answers = ("ann", "bob")
    asked = [
        KnownQuestion("Who?", answers, pairs) for pairs in (good, good, good, bad, Pairs(), None)
    ]
    told = chale.weighing(asked, [item] * len(asked), similarity)
    assert "0.50 +- 0.98 (95 %, 4 questions)" in told
    alike = [KnownQuestion("Who?", ("ann", "ann"), good)] * 3
    assert "too few questions" in chale.weighing(alike, [item] * 3, similarity)


def test_pairs_whose_sides_are_alike_can_be_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_data(tmp_path)
    monkeypatch.setattr(chale, "NeighborStore", partial(NeighborStore, embedding=Apart()))
    references = _references(ScriptedModel(script=_script))
    recording = tmp_path / "recording.jsonl"
    rows = [chale.record(item, references) for item in chale.items(tmp_path)]
    recording.write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = ["--data", str(tmp_path), "--recording", str(recording), "--n-answers", "2"]
    common += ["--n-wrong", "3", "--similarity", "rouge", "--config", "fewl"]
    with pytest.warns(UserWarning, match="too few usable pairs"):
        assert chale.main([*common, "--drop-alike", "0.01"]) == 0
    assert "0.0 usable pairs each" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        ({"yes": math.log(0.6), "no": math.log(0.2), "maybe": -2.0}, 0.75),
        ({"Yes": math.log(0.3), " yes": math.log(0.3), "NO.": math.log(0.2)}, 0.75),
        ({"no": -0.1}, 0.0),
    ],
)
def test_the_share_of_yes(tokens: dict[str, float], share: float) -> None:
    assert share_of_yes(tokens) == pytest.approx(share)


def test_agreement_says_what_it_cannot_read() -> None:
    with pytest.raises(DemurError, match="neither yes nor no"):
        share_of_yes({"perhaps": -0.1})
    silent = Agreement(FakeListChatModel(responses=["yes"]))
    with pytest.raises(DemurError, match="log-probabilities"):
        silent([("a", "b")])
