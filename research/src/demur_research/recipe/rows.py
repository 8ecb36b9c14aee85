"""Define the rows that a judge is trained on, and read and write them as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from demur._system import write_lines
from demur_research.datasets.files import load_lines, rows

Label = Literal["support", "contradict", "neutral", "unsupported"]
"""What passages say of a claim. "unsupported": they contradict it or say nothing about it, and the
source does not say which."""
LABELS: tuple[Label, ...] = get_args(Label)
"""All labels. The first three are the outputs of a judge, in this order."""


@dataclass(frozen=True)
class TrainingRow:
    """Hold passages and a claim about them, with the label that a judge shall give."""

    passages: str
    claim: str
    label: Label
    source: str
    """The name of the source, such as "snli" or "worlds"."""
    question: str | None = None
    """The question that the claim answers, if the claim alone says too little, as "In 1912."."""
    weight: float = 1.0
    """How often a pass over all rows shows this one: 0.3 in 3 of 10 passes, 2 twice in each."""

    @property
    def shown(self) -> str:
        """Return the claim as a judge reads it: behind its question, if there is one."""
        return f"{self.question} {self.claim}" if self.question else self.claim


_Text = Annotated[str, Field(min_length=1)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    passages: _Text
    claim: _Text
    label: Label
    source: str
    question: str | None = None
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


class _OwnLine(BaseModel):
    passages: _Text | Annotated[list[_Text], Field(min_length=1)]
    claim: _Text | None = None
    label: Label | None = None
    question: str | None = None


@dataclass(frozen=True)
class Own:
    """Hold what was read of a file of your own."""

    rows: tuple[TrainingRow, ...]
    """The lines with a claim and its label."""
    documents: tuple[str, ...]
    """The passages of all lines, each once, from which rows can be made by rules."""


def read_own(path: Path, weight: float = 1.0) -> Own:
    """Return the rows and documents of a file of JSON lines.

    A line has `passages` (a text or a list of texts) and, if it is labelled, `claim` and `label`.
    `question` is optional. Other fields are ignored.

    Args:
        path: The file, packed if its name ends in ".gz".
        weight: The weight of each row.

    Raises:
        ValueError: The file cannot be read, or a line does not have this form, or has a claim or a
            label without the other. The message says where.
    """
    found: list[TrainingRow] = []
    documents: dict[str, None] = {}
    for at, line in enumerate(rows(load_lines(path), _OwnLine, str(path)), start=1):
        passages = line.passages if isinstance(line.passages, str) else "\n\n".join(line.passages)
        documents[passages] = None
        if line.claim is not None and line.label is not None:
            found.append(
                TrainingRow(passages, line.claim, line.label, "own", line.question, weight)
            )
        elif (line.claim is None) != (line.label is None):
            raise ValueError(f"{path}: row {at} has a claim or a label, expected both or neither")
    return Own(tuple(found), tuple(documents))


def write_rows(path: Path, found: Iterable[TrainingRow]) -> None:
    """Write rows as JSON lines, completely or not at all; packed if the name ends in ".gz".

    Raises:
        ValueError: The file cannot be written.
    """
    try:
        write_lines(path, (asdict(row) for row in found))
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}") from error


def read_rows(path: Path) -> list[TrainingRow]:
    """Return the rows that `write_rows` wrote.

    Raises:
        ValueError: The file cannot be read, holds no row, or has a line of another form. The
            message says where.
    """
    found = [TrainingRow(**dict(line)) for line in rows(load_lines(path), _Line, str(path))]
    if not found:
        raise ValueError(f"{path} holds no row: make rows with demur-bench train rows")
    return found
