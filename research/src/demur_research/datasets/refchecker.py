"""Read RefChecker's human annotations: labelled claim triplets from the answers of seven models.

Two forms are read: the publisher's files, a list for each setting and model, and JSON lines with
id, setting, source, model, response, claims and labels. Neither has the questions or the
references, because the publisher does not give them. So the answers cannot be checked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.rows import Answer, LabelledRow, Reading

SETTINGS: Mapping[str, str] = {
    "nq": "zero_context",
    "msmarco": "noisy_context",
    "dolly": "accurate_context",
}
"""The setting in which the models answered, by the source of the questions."""
MODELS = (
    *("alpaca_7B", "chatgpt", "claude2", "davinci001"),
    *("falcon_40B_instruct", "gpt4", "llama2_70b_chat"),
)

Label = Literal["Entailment", "Neutral", "Contradiction"]


class _Claim(BaseModel):
    triplet: tuple[str, str, str]
    human_label: Label


class _Response(BaseModel):
    id: str = Field(coerce_numbers_to_str=True)
    response: str
    claude2_response_kg: list[_Claim]


class _Line(BaseModel):
    id: str
    source: str
    model: str
    response: str
    claims: list[tuple[str, str, str]]
    labels: list[Label]


def _read(files: Mapping[str, Path]) -> Reading:
    found, kept = [], Counter[str]()
    for path in files.values():
        for line in _lines(path):
            kept["abstained"] += not line.claims
            kept["claim twice"] += len({*line.claims}) < len(line.claims)
            found.append(_row(line))
    return Reading(tuple(found), kept=kept)


def _lines(path: Path) -> Iterator[_Line]:
    if path.suffix == ".jsonl":
        for at, line in enumerate(rows(load(path), _Line, str(path)), start=1):
            if len(line.claims) != len(line.labels):
                raise ValueError(
                    f"{path}: row {at}: expected a label for each of {len(line.claims)} claims, "
                    f"got {len(line.labels)} labels"
                )
            if line.source not in SETTINGS:
                raise ValueError(f"{path}: row {at}, source: expected one of {', '.join(SETTINGS)}")
            yield line
        return
    source, _, model = path.stem.removesuffix("_answers").partition("_")
    if source not in SETTINGS or not model:
        raise ValueError(
            f"{path}: expected a name such as nq_chatgpt_answers.json, by which source and model "
            "are known"
        )
    for one in rows(load(path), _Response, str(path)):
        claims = one.claude2_response_kg
        yield _Line(
            id=f"{source}-{one.id}",
            source=source,
            model=model,
            response=one.response,
            claims=[claim.triplet for claim in claims],
            labels=[claim.human_label for claim in claims],
        )


def _row(line: _Line) -> LabelledRow:
    wrong = any(label != "Entailment" for label in line.labels) if line.labels else None
    answer = Answer(line.response, wrong, label=None if line.labels else "Abstain")
    told: dict[str, Any] = {
        "setting": SETTINGS[line.source],
        "source": line.source,
        "model": line.model,
        "claims": [list(claim) for claim in line.claims],
        "labels": list(line.labels),
    }
    return LabelledRow(f"{line.id} {line.model}", None, (answer,), group=line.id, metadata=told)


def _file(source: str, model: str) -> File:
    path = f"human_annotations_v1/{SETTINGS[source]}/{source}_{model}_answers.json"
    return File(
        f"refchecker/{path}",
        "https://raw.githubusercontent.com/amazon-science/RefChecker/"
        f"1df1b25cee792ba2b171302e31ca4f768bd67703/benchmark/{path}",
        needed=False,
    )


DATA_SET = DataSet(
    name="refchecker",
    title="RefChecker human annotations",
    home="https://github.com/amazon-science/RefChecker",
    licence="CC BY 4.0",
    files=tuple(_file(source, model) for source in SETTINGS for model in MODELS),
    other_forms=("refchecker/refchecker.jsonl",),
    published_rows=2100,
    level="claim",
    shows="How often seven models hallucinate by the claims that people labelled.",
    cannot_show=(
        "How well a checker does: questions and references are not published. People agree on the "
        "same claim in about 95 %, so more is out of reach."
    ),
    read=_read,
    traps={
        "abstained": "The response has no claims and so no label. Rates over responses leave it "
        "out.",
        "claim twice": "A response has the same claim more than once.",
    },
)
