"""What is known of a data set: where it comes from, what it holds, what it can and cannot show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from demur_research.datasets.rows import Reading

Level = Literal["answer", "sentence", "span", "claim"]


@dataclass(frozen=True)
class File:
    """One file of a data set, as its publisher calls it."""

    path: str
    """Under the folder of all sets, such as "chale/hallucinated_ans_final_filtered.json"."""
    url: str | None
    """Its official place; None where it cannot be fetched without an account."""
    sha256: str | None = None
    """None where no whole copy of it was at hand: a checksum is never made up."""
    needed: bool = True
    """Whether the set cannot be read without it."""


@dataclass(frozen=True)
class DataSet:
    """A public data set with labels."""

    name: str
    title: str
    home: str
    """The publisher's page."""
    licence: str
    files: tuple[File, ...]
    published_rows: int | None
    """How many rows the publisher gives; None where no copy was at hand."""
    level: Level
    """What carries a label."""
    shows: str
    """What its labels are good for, in a sentence."""
    cannot_show: str
    """What they say nothing about, and which trivial rule does well on it."""
    read: Callable[[Mapping[str, Path]], Reading]
    """From its files, by their paths in `files` or `other_forms`, to its rows. It tells forms apart
    by what a file holds, for a user may name one file by itself."""
    other_forms: tuple[str, ...] = ()
    """Paths of files that hold the same rows in another form. Where `files` are not there, the
    first of these that is there is read instead."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """By name, what a filter leaves out and why: the names of `Reading.left_out`."""
    traps: Mapping[str, str] = field(default_factory=dict)
    """By name, what is kept although it may mislead: the names of `Reading.kept`."""
    read_here: bool = True
    """Whether the reader was tried on the publisher's own file. Else it was tried on files that
    follow the documented form, and where there are any on the same rows in another form."""
