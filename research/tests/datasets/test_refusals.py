"""Test that a file of another form is refused, with what it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demur_research.datasets import read
from publishers import dump

CHALE = {
    name: ["see <Li> it"]
    for name in ("Question", "Short_ans", "Long_ans", "non-halu", "mid-halu", "halu")
}
WICE = {
    **{"claim": "It is red.", "label": "supported", "evidence": ["It is red."]},
    **{
        "supporting_sentences": [[3]],
        "meta": {"id": "dev1", "claim_title": "Bridge", "claim_section": ""},
    },
}
REFCHECKER = {
    **{"id": "nq-1", "source": "nq", "model": "m", "response": "It."},
    **{"claims": [["a", "b", "c"]], "labels": []},
}


@pytest.mark.parametrize(
    ("name", "file", "held", "told"),
    [
        ("chale", "chale.json", {**CHALE, "halu": []}, "are not of the same length"),
        ("chale", "chale.json", {"Question": ["who"]}, "an object with the lists Question, Short"),
        ("chale", "chale.json", CHALE, "holds no row of CHALE that can be used"),
        ("phd", "phd.json", {"wiki_2w": []}, "an object with the lists wiki_10w, wiki_1000w, wiki"),
        ("phd", "phd.json", {"wiki_10w": [{"entity": "A"}]}, "wiki_10w: row 1, AI: Field required"),
        ("wice", "wice.jsonl", [WICE], r"sentences 0 to 0, got \[3\]"),
        ("refchecker", "answers.json", [], r"expected a name such as nq_chatgpt_answers\.json"),
        ("refchecker", "x.jsonl", [REFCHECKER], "label for each of 1 claims, got 0"),
        ("faithbench", "x.jsonl", [{}], r"x\.jsonl.*expected an object with the list samples"),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: Path, name: str, file: str, held: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        read(name, dump(tmp_path / file, held))
