"""Test RefChecker's human annotations in both of their forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_sets import reading
from publishers import dump

CLAIMS = [(["Iron", "is", "grey"], "Entailment"), (["Iron", "melts at", "20 °C"], "Contradiction")]


def _response(at: str, claims: list[tuple[list[str], str]]) -> dict[str, Any]:
    listed = [{"triplet": triplet, "human_label": label} for triplet, label in claims]
    return {"id": at, "response": "Iron, it says.", "claude2_response_kg": listed}


def _published(folder: Path) -> Path:
    for name, rows in {
        "zero_context/nq_chatgpt": [_response("-5", CLAIMS), _response("6", [])],
        "zero_context/nq_alpaca_7B": [_response("-5", CLAIMS[:1] * 2)],
        "noisy_context/msmarco_gpt4": [_response("7", CLAIMS[:1])],
    }.items():
        path = folder / "human_annotations_v1" / f"{name}_answers.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        dump(path, rows)
    return folder


def test_a_response_is_hallucinated_if_a_claim_is_not_entailed(tmp_path: Path) -> None:
    found = reading("refchecker", _published(tmp_path))
    labels = {row.key: row.answers[0].hallucinated for row in found}
    assert labels == {
        "nq--5 alpaca_7B": False,
        "nq--5 chatgpt": True,
        "nq-6 chatgpt": None,
        "msmarco-7 gpt4": False,
    }
    assert found.kept == {"abstained": 1, "claim twice": 1}
    assert len(found.missing) == 21 - 3


def test_the_answers_to_a_question_are_a_group_and_claims_stand_beside_them(
    tmp_path: Path,
) -> None:
    found = {row.key: row for row in reading("refchecker", _published(tmp_path))}
    assert found["nq--5 alpaca_7B"].group == found["nq--5 chatgpt"].group == "nq--5"
    assert found["nq--5 chatgpt"].metadata == {
        "setting": "zero_context",
        "source": "nq",
        "model": "chatgpt",
        "claims": [["Iron", "is", "grey"], ["Iron", "melts at", "20 °C"]],
        "labels": ["Entailment", "Contradiction"],
    }
    assert found["nq-6 chatgpt"].answers[0].label == "Abstain"


def test_any_folder_above_the_lists_will_do_and_so_will_one_list(tmp_path: Path) -> None:
    _published(tmp_path / "refchecker")
    readings = [
        reading("refchecker", tmp_path.joinpath(*names))
        for names in ([], ["refchecker"], ["refchecker", "human_annotations_v1"])
    ]
    assert readings[0] == readings[1] == readings[2]
    lists = tmp_path / "refchecker" / "human_annotations_v1" / "zero_context"
    one = reading("refchecker", lists / "nq_chatgpt_answers.json")
    assert [row.key for row in one] == ["nq--5 chatgpt", "nq-6 chatgpt"]
