"""Make up a small data set with recorded replies, in the forms of the publishers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from support.fakes import isolated


def passage(entity: str) -> str:
    return f"{entity} is known.\nMuch is said of it."


# The entity, domain and label; then for both variants the reply, and a model's label of it.
PASSAGES = [
    ("Red Fox", "low", "factual"),
    ("Blue Whale (animal)", "low", "non-factual"),
    ("Émile Zola", "medium", "factual"),
    ("Iron", "high", "non-factual"),
    ("Grey Heron", "high", "non-factual"),
]
REPLIES = {
    "qg": [
        ("The red fox.", "None"),
        ("The orca.", "No."),
        ("Emile Zola.", "Yes."),
        ("Iron.", "None"),
        ("A bird.", "I cannot tell."),
    ],
    "em": [
        ("Entity: Red Fox\nPercentage: 80%", "None"),
        ("Entity: Blue whale\nPercentage: 50%", "None"),
        ("Entity: Émile Zola\nPercentage: 100%", "None"),
        ("Entity: Copper\nPercentage: 100%", "No."),
        ("Entity: Grey Heron\nNot met: none", "None"),
    ],
}
_KEYS = {"low": "wiki_10w", "medium": "wiki_1000w", "high": "wiki_1y"}
_QUERIES = {"qg": "question", "em": "detail"}


def published(folder: Path) -> tuple[Path, Path]:
    """Write the publishers' files: the data, and the folder with the lists of records."""
    listed: dict[str, list[dict[str, Any]]] = {key: [] for key in _KEYS.values()}
    for entity, domain, label in PASSAGES:
        row = {"entity": entity, "url": "-", "AI": passage(entity), "label": label}
        listed[_KEYS[domain]].append(row)
    data = dump(folder / "PHD_benchmark.json", listed)
    records = folder / "Reverse_Validation"
    records.mkdir(exist_ok=True)
    for variant, replies in REPLIES.items():
        dump(records / f"our_dataset_{variant}_record.json", published_list(variant, replies))
    return data, records


def published_list(variant: str, replies: list[tuple[str, str]]) -> list[dict[str, Any]]:
    # The publishers' label is an old prediction. Here it is always wrong.
    return [
        {
            **{"entity": entity, "claim": passage(entity), _QUERIES[variant]: "Which?"},
            **{"answer": reply, "Is_same": is_same},
            "label": "factual" if label == "non-factual" else "non-factual",
        }
        for (entity, _, label), (reply, is_same) in zip(PASSAGES, replies, strict=True)
    ]


def as_lines(folder: Path) -> tuple[Path, Path]:
    """Write the same as JSON lines with ids: the data, and records that include other methods."""
    data = [
        {"id": f"phd-{at}", "entity": entity, "passage": passage(entity), "domain": d, "label": one}
        for at, (entity, d, one) in enumerate(PASSAGES)
    ]
    records = []
    for at in range(len(PASSAGES)):
        row: dict[str, Any] = {"id": f"phd-{at}"}
        for variant, replies in REPLIES.items():
            reply, is_same = replies[at]
            row[f"{variant}_answer"] = reply
            row[f"{variant}_is_same"] = None if is_same == "None" else is_same
        row["qg_question"], row["em_requirements"] = "Which?", "1. It is known."
        row["lmvslm_verdict"] = ["Correct.", "Incorrect.", "Correct.", "I cannot say.", "Correct."][
            at
        ]
        row["zero_shot_recorded_decision"] = "factual"
        row["selfcheck_bertscore"] = at / 10
        row["samples"] = [passage(PASSAGES[at][0]), "Something else is said."]
        records.append(row)
    return dump(folder / "phd.jsonl", data), dump(folder / "records_chatgpt.jsonl", records)


def say(stage: str, messages: Sequence[BaseMessage]) -> str:
    """Reply as the recorded model: a query holds its passage's number, so its reply is known."""
    if stage == "sample":
        return "Nothing of it is known."
    if stage == "matching":
        return "Yes."
    if stage == "construction":
        at = [entity for entity, _, _ in PASSAGES].index(isolated("entity", messages))
        if str(messages[-1].content).endswith("list:"):
            return f"1. Something known everywhere\n2. Often described\n3. Number {at} here"
        return f"What has the number {at} here, is known everywhere and often described?"
    if stage == "access":
        asked = "\n".join(str(message.content) for message in messages)
        variant = "em" if "<requirements" in asked else "qg"
        return REPLIES[variant][int(re.findall(r"[Nn]umber (\d)", asked)[-1])][0]
    if stage == "verdict":
        return "Non-factual." if "Iron" in isolated("passage", messages) else "Factual."
    said = {"examination": "1. Is it known?", "testimony": "1. Yes.", "more": "No."}
    return said.get(stage, "Correct.")


def dump(path: Path, rows: Any) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    else:
        path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def biographies(folder: Path) -> tuple[Path, Path]:
    """Write WikiBio: four passages of the subset, another passage, and records of three of them."""
    kinds = {
        "Ann Lee ": ["accurate", "minor_inaccurate"],
        '"Bob Ray ': ["major_inaccurate"] * 2,
        "Cy Dent, ": ["accurate", "accurate", "accurate", "major_inaccurate"],
        "Di Moss ": ["major_inaccurate"],
    }
    data: list[dict[str, Any]] = [
        {
            **{"id": f"wikibio-{at}", "entity": entity, "passage": passage(entity)},
            **{"labels": labels, "in_rv_subset": True},
        }
        for at, (entity, labels) in enumerate(kinds.items())
    ]
    outside = {"entity": None, "labels": ["accurate"], "in_rv_subset": False}
    data.append({"id": "wikibio-4", "passage": "Nobody.", **outside})
    replies: Iterable[tuple[str, str]] = [("Ann Lee", "Ann Lee "), ("Eve.", '"Bob Ray ')]
    records = [
        {"entity": entity, "claim": passage(entity), "question": "Who?", "answer": reply}
        for reply, entity in [*replies, ("Nobody.", "Cy Dent, ")]
    ]
    where = folder / "Reverse_Validation"
    where.mkdir(exist_ok=True)
    dump(where / "wiki_bio_qg_record.json", records)
    return dump(folder / "wikibio.jsonl", data), where


def scored_biographies(folder: Path) -> tuple[Path, Path]:
    """Write the same passages with recorded scores of SelfCheck, and return data and records."""
    folder.mkdir()
    data, _ = biographies(folder)
    scores = {"wikibio-0": 0.4, "wikibio-1": 0.2, "wikibio-2": 0.3, "wikibio-4": 0.1}
    records = [
        {"id": key, "lmvslm_verdict": "Correct.", "selfcheck_bertscore": score}
        for key, score in scores.items()
    ]
    return data, dump(folder / "records_chatgpt.jsonl", records)
