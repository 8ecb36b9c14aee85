"""A labelled set: which answers are hallucinated, in which groups, and who is asked about them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from demur._text import replace_surrogates
from demur.comparing.detectors import Detector, Needs
from demur.observe.log import LABEL, truth
from demur.scoring import Data, Note, Results, Row, ScoringError, read_input

GROUP = "group"
EXTRA = (LABEL, GROUP)
"""What a row may hold beside the fields of `demur.scoring.Data`."""


@dataclass(frozen=True)
class Label:
    """What is known of one answer."""

    hallucinated: bool
    group: str
    """Answers of a group are resampled, and split into halves, together."""


@dataclass(frozen=True)
class Labelled:
    """A set whose rows were all read once, and found to be without fault."""

    data: Data
    """With the labelled answers that are compared, and no others."""
    labels: Mapping[str, Label]
    """By the answers' keys: those that are compared."""
    unlabelled: int
    """Answers without a label, which no detector is asked about."""
    unknown: int
    """Labels that were given for answers that are not in the set."""
    _lacks: Mapping[tuple[Needs, bool], str]
    """Why no row allows a detector, by what it needs and whether it is expensive."""
    _keys: Mapping[tuple[Needs, bool], Collection[str]]
    """The keys of the answers for a detector, by the same."""

    def lacks(self, detector: Detector) -> str | None:
        """Why no row allows a detector, or None if one does."""
        return self._lacks.get((detector.needs, detector.expensive))

    def wants(self, key: str, detector: Detector) -> bool:
        """Whether a detector is asked about an answer."""
        return key in self._keys[detector.needs, detector.expensive]

    def notes(self, model: str, left_out: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """What the results have to hold of the set, so that they can be read without it.

        Args:
            model: The name of the model that is asked.
            left_out: Detectors that are not asked, each with why.
        """
        about = {"name": self.data.name, "model": model, "unlabelled": self.unlabelled}
        yield {"compared": {**about, "unknown": self.unknown}}
        for name, why in left_out.items():
            yield {"left_out": name, "why": why}
        for key, label in self.labels.items():
            yield {"answer": key, LABEL: label.hallucinated, GROUP: label.group}


@dataclass
class _Read:
    """What a first reading finds, row by row."""

    given: Mapping[str, bool]
    needs: Collection[Needs]
    labels: dict[str, dict[str, Label]] = field(default_factory=dict)
    """By the rows' ids, which several lines may share, and the answers' keys."""
    lacks: dict[str, dict[Needs, str]] = field(default_factory=dict)
    """By the answers' keys, what their rows lack."""
    used: int = 0
    unlabelled: int = 0

    def take(self, row: Row) -> Row:
        found = _labels(row, self.given)
        self.used += sum(row.key(name) in self.given for name in row.samples)
        self.unlabelled += len(row.samples) - len(found)
        if found:
            self.labels.setdefault(row.id, {}).update(found)
            sample = next(iter(row.samples.values()))
            lacks = {needs: lack for needs in self.needs if (lack := needs(sample)) is not None}
            self.lacks |= dict.fromkeys(found, lacks)
        return row


def read_labelled(
    data: Data,
    given: Mapping[str, bool],
    detectors: Iterable[Detector],
    *,
    limit: int | None = None,
    limit_expensive: int | None = None,
) -> Labelled:
    """Read a labelled set, so that no fault shows after something was spent.

    Rows are drawn by a hash of their ids. So a limit takes the same rows each time, a larger one
    takes more of them, and it does not matter by what a file is sorted.

    Args:
        data: The rows; `EXTRA` names their further fields.
        given: Labels by the answers' keys, which count instead of the rows' own.
        detectors: Those that may be asked.
        limit: Compare so many rows that have a label; None: all.
        limit_expensive: Ask expensive detectors about so many of them only.

    Raises:
        ScoringError: The file cannot be read, has lines that are no rows or labels that cannot be
            read, or no answer in it has a label.
    """
    kinds = {(detector.needs, detector.expensive) for detector in detectors}
    read = _Read(given, {needs for needs, _ in kinds})
    with read_input(replace(data, select=read.take)):
        pass
    if not read.labels:
        raise ScoringError(
            f"{data.name}: none of its {read.unlabelled:,} answers has a label. Expected a field "
            f"{LABEL!r} that is true or false (for several answers an object from their names), or "
            "--labels with a file of them; --field hallucinated=NAME names another field"
        )
    drawn = sorted(read.labels, key=_drawn_by)[:limit]
    labels = {key: label for row in drawn for key, label in read.labels[row].items()}

    def select(row: Row) -> Row | None:
        samples = {name: one for name, one in row.samples.items() if row.key(name) in labels}
        return replace(row, samples=samples) if samples else None

    lacks, keys = dict[tuple[Needs, bool], str](), dict[tuple[Needs, bool], set[str]]()
    for kind in kinds:
        needs, expensive = kind
        rows = drawn[:limit_expensive] if expensive else drawn
        some = [key for row in rows for key in read.labels[row]]
        keys[kind] = {key for key in some if needs not in read.lacks[key]}
        if not keys[kind]:
            lacks[kind] = read.lacks[some[0]][needs]
    return Labelled(
        data=replace(data, select=select),
        labels=labels,
        unlabelled=read.unlabelled,
        unknown=len(given) - read.used,
        _lacks=lacks,
        _keys=keys,
    )


def write_notes(results: Results, notes: Iterable[Mapping[str, Any]]) -> None:
    """Write down what the results do not tell yet."""
    told = {_subject(line.value): line.value for line in results.lines() if isinstance(line, Note)}
    for note in notes:
        if told.get(_subject(note)) != note:
            results.append({"note": note})


def _subject(note: Mapping[str, Any]) -> tuple[Any, Any]:
    return note.get("answer"), note.get("left_out")


@dataclass
class Told:
    """What the notes in a file of results tell."""

    labels: dict[str, Label] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def take(self, note: Note) -> None:
        """Read a note; one of something else is left alone."""
        match note.value:
            case {"answer": str(key), "hallucinated": bool(label), "group": str(group)}:
                self.labels[key] = Label(label, group)
            case {"left_out": str(name), "why": str(why)}:
                self.left_out[name] = why
            case {"compared": dict(about)}:
                self.about = about


def _labels(row: Row, given: Mapping[str, bool]) -> dict[str, Label]:
    """The labels of a row's answers, by their keys; an answer without one is left out."""
    own, group = row.extra.get(LABEL), _group(row)
    if None in row.samples:
        own = {None: own}
    elif own is not None and not isinstance(own, dict):
        raise ValueError(
            f"{LABEL}: expected an object from the names of the answers to truth values, got "
            f"{own!r:.80}"
        )
    named = {name and replace_surrogates(name): value for name, value in (own or {}).items()}
    if unknown := named.keys() - row.samples.keys():
        raise ValueError(f"{LABEL}: no answer is called {min(unknown)!r:.80}")
    labels = {}
    for name in row.samples:
        key = row.key(name)
        label = given[key] if key in given else truth(named.get(name))
        if label is not None:
            labels[key] = Label(label, group)
    return labels


def _group(row: Row) -> str:
    value = row.extra.get(GROUP)
    if value is None:
        return row.id
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise ValueError(f"{GROUP}: expected a text or a whole number, got {value!r:.80}")
    return replace_surrogates(str(value))


def _drawn_by(row: str) -> bytes:
    return hashlib.sha256(row.encode()).digest()
