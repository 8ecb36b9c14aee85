"""Read Factcheck-Bench: claims of a model's answers, and passages of the web (Wang et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import FILTERS, digest, each_once
from demur_research.datasets.rows import Answer, LabelledRow, Reading


class _Line(BaseModel):
    claim: str
    evidence: str
    stance: Literal["completely-support", "partially-support", "refute", "irrelevant"]


def read(files: Mapping[str, Path]) -> Reading:
    """Return the claims, each with one passage that a search found.

    A claim counts as hallucinated if its passage supports it only in part, or says nothing about
    it. The label keeps the publisher's word.

    Raises:
        ValueError: A file does not have the publisher's form. The message says where.
    """
    found = (
        LabelledRow(
            key=digest(line.claim, line.evidence),
            question=None,
            answers=(Answer(line.claim, line.stance != "completely-support", label=line.stance),),
            contexts=(line.evidence,),
            group=line.claim,
        )
        for path in files.values()
        for line in rows(load(path), _Line, str(path))
    )
    return each_once(found)


DATA_SET = DataSet(
    name="factcheck-bench",
    title="Factcheck-Bench (stance of evidence)",
    home="https://github.com/yuxiaw/Factcheck-GPT",
    licence="Apache-2.0 (repository); passages of the web are their owners'",
    files=(
        File(
            "factcheck_bench/subtask3_claim_evidence_stance.jsonl",
            "https://raw.githubusercontent.com/yuxiaw/Factcheck-GPT/"
            "7284eefd1dcb164e9b97a53b28afd9cb4c9734c0/subtasks/"
            "subtask3_claim_evidence_stance.jsonl",
        ),
    ),
    other_forms=("nli/factcheckbench_stance.jsonl",),
    published_rows=3_305,
    level="claim",
    shows="Whether a checker tells support from passages that are merely about the same thing, "
    "for claims of a model's answers.",
    cannot_show="Whether a claim is true: the label is of one passage, and a true claim is "
    "hallucinated here beside a passage that does not say it. Calling every claim hallucinated is "
    "right for 81 percent, and the share of the claim's words in the passage has an AUROC of 0.71. "
    "A claim stands with about five passages, which are drawn together.",
    read=read,
    filters=FILTERS,
    read_here=False,
)
