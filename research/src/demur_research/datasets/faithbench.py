"""Read FaithBench: summaries on which detectors disagree, with marked spans (Bao et al. 2025).

The files have the form that the publisher documents: `batch_1.json` to `batch_16.json`, without 13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import load, rows
from demur_research.datasets.pairs import digest
from demur_research.datasets.rows import Answer, LabelledRow, Part, Reading
from demur_research.datasets.spans import MISPLACED, TRAPS, Quoted, split

_SEVERITY = ("Consistent", "Benign", "Questionable", "Unwanted")
_Label = Annotated[str, Field(pattern=r"^(Unwanted(\.\w+)?|Questionable|Benign)$")]


class _Annotation(BaseModel):
    label: list[_Label] = Field(min_length=1)
    summary_span: str
    summary_start: int
    summary_end: int

    @property
    def worst(self) -> str:
        """Return the severest label; for "Unwanted", with its kind where that is given."""
        return max(self.label, key=lambda one: (_severity(one), len(one)))


class _Meta(BaseModel):
    summarizer: str


class _Sample(BaseModel):
    sample_id: int
    source: str
    summary: str
    annotations: list[_Annotation] = []
    metadata: _Meta


def read(files: Mapping[str, Path]) -> Reading:
    """Return the summaries of the batches at hand.

    As in the publisher's own script, a summary has the severest label of any annotator. It is
    hallucinated if that label is "Unwanted" or "Questionable". "Benign" is additional text that the
    annotator does not mind. `Answer.label` keeps the word. The spans of several annotators may
    overlap.

    Raises:
        ValueError: A file does not have the documented form. The message says where.
    """
    kept: Counter[str] = Counter()
    found = []
    for path in files.values():
        held: Any = load(path)
        if not isinstance(held, dict):
            raise ValueError(f"{path}: expected an object with the list samples")
        found += [
            _row(path.stem, one, kept)
            for one in rows(held.get("samples"), _Sample, f"{path}, samples")
        ]
    return Reading(tuple(found), kept=kept)


def _row(batch: str, sample: _Sample, kept: Counter[str]) -> LabelledRow:
    worst = max((one.worst for one in sample.annotations), key=_severity, default="Consistent")
    parts, misplaced = split(
        sample.summary,
        (
            Quoted(
                Part(one.summary_start, one.summary_end, _is_wrong(one.worst), one.worst),
                one.summary_span,
            )
            for one in sample.annotations
        ),
    )
    kept[MISPLACED] += len(misplaced)
    label = worst.partition(".")[0]
    return LabelledRow(
        key=f"{batch} {sample.sample_id}",
        question=None,
        answers=(Answer(sample.summary, _is_wrong(worst), label=label, parts=parts),),
        contexts=(sample.source,),
        group=digest(sample.source),
        metadata={"model": sample.metadata.summarizer, "misplaced": misplaced},
    )


def _severity(label: str) -> int:
    return _SEVERITY.index(label.partition(".")[0])


def _is_wrong(label: str) -> bool:
    return _severity(label) >= _severity("Questionable")


DATA_SET = DataSet(
    name="faithbench",
    title="FaithBench",
    home="https://github.com/vectara/FaithBench",
    licence="none found with the data: for use on this machine only, not to be passed on",
    files=tuple(
        File(
            f"faithbench/batch_{batch}.json",
            "https://raw.githubusercontent.com/vectara/FaithBench/"
            f"abb6503bb2356da196260fbc4cb7837fb1742bb5/data_for_release/batch_{batch}.json",
            needed=False,
        )
        for batch in range(1, 17)
        if batch != 13
    ),
    published_rows=None,
    level="span",
    shows="Whether a detector finds what strong detectors disagreed about, and where in a summary "
    "it is.",
    cannot_show="How a detector does on ordinary summaries: those that detectors agreed on were "
    "left out, and the detectors that chose them do badly here by construction. Annotators differ, "
    "and the severest counts. Summaries of one source are drawn together.",
    read=read,
    traps=TRAPS,
    read_here=False,
)
