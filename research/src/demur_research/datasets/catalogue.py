"""Describe data sets: where each comes from, what it holds, and what it can and cannot show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from demur_research.datasets.rows import Reading

Level = Literal["answer", "sentence", "span", "claim"]


@dataclass(frozen=True)
class File:
    """Describe one file of a data set, under the publisher's name."""

    path: str
    """The path under the folder of all sets, such as
    "chale/hallucinated_ans_final_filtered.json"."""
    url: str | None
    """The publisher's address of the file; None if it takes an account to fetch it."""
    sha256: str | None = None
    """The checksum; None if no complete copy was at hand, since a checksum is never made up."""
    needed: bool = True
    """Whether the data set cannot be read without the file."""


@dataclass(frozen=True)
class DataSet:
    """Describe a public data set with labels."""

    name: str
    title: str
    home: str
    """The address of the publisher's page."""
    licence: str
    files: tuple[File, ...]
    published_rows: int | None
    """The number of rows that the publisher gives; None if no copy was at hand."""
    level: Level
    """What carries a label."""
    shows: str
    """What the labels can measure, in a sentence."""
    cannot_show: str
    """What the labels say nothing about, and which trivial rule does well on them."""
    read: Callable[[Mapping[str, Path]], Reading]
    """A function from the data set's files, by their paths in `files` or `other_forms`, to its
    rows. It recognises a form by the file's content, because a user may name one file by itself."""
    other_forms: tuple[str, ...] = ()
    """Paths of files that hold the same rows in another form. If `files` are not found, the first
    of these that exists is read instead."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """What each filter leaves out and why, by the names of `Reading.left_out`."""
    traps: Mapping[str, str] = field(default_factory=dict)
    """What is kept although it may mislead, by the names of `Reading.kept`."""
    read_here: bool = True
    """Whether the reader was tried on the publisher's own file. If not, it was tried on files in
    the documented form and, where there are any, on the same rows in another form."""
    shipped: Path | None = None
    """The folder of an installed distribution that brings the files; None: no distribution does."""
