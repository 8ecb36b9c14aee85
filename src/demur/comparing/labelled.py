"""Read a labelled set: labels, groups, and which answers each detector is asked about."""

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
"""The fields of a row beside those of `demur.scoring.Data`."""


@dataclass(frozen=True)
class Label:
    """Hold the label and the group of one answer."""

    hallucinated: bool
    group: str
    """The name of the group. The answers of a group are resampled together, and stay in the same
    half."""


@dataclass(frozen=True)
class Labelled:
    """Hold a labelled set whose rows were all read once and are without errors."""

    data: Data
    """The data, limited to the labelled answers that are compared."""
    labels: Mapping[str, Label]
    """The labels of the answers that are compared, by the answers' keys."""
    unlabelled: int
    """The number of answers without a label, which no detector is asked about."""
    unknown: int
    """The number of labels that were given for answers which are not in the set."""
    _lacks: Mapping[tuple[Needs, bool], str]
    """The reason why no row allows a detector, by what the detector needs and whether it is
    expensive."""
    _keys: Mapping[tuple[Needs, bool], Collection[str]]
    """The keys of the answers for a detector, by what the detector needs and whether it is
    expensive."""

    def lacks(self, detector: Detector) -> str | None:
        """Return why no row allows a detector, or None if a row does."""
        return self._lacks.get((detector.needs, detector.expensive))

    def wants(self, key: str, detector: Detector) -> bool:
        """Return whether a detector is asked about an answer."""
        return key in self._keys[detector.needs, detector.expensive]

    def notes(self, model: str, left_out: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the notes about the set that make the results readable without the set.

        Args:
            model: The name of the model that is asked.
            left_out: The detectors that are not asked, each with the reason.
        """
        about = {"name": self.data.name, "model": model, "unlabelled": self.unlabelled}
        yield {"compared": {**about, "unknown": self.unknown}}
        for name, why in left_out.items():
            yield {"left_out": name, "why": why}
        for key, label in self.labels.items():
            yield {"answer": key, LABEL: label.hallucinated, GROUP: label.group}


@dataclass
class _Read:
    """Collect what the first reading finds, row by row."""

    given: Mapping[str, bool]
    needs: Collection[Needs]
    labels: dict[str, dict[str, Label]] = field(default_factory=dict)
    """The labels by the rows' ids, which several lines may share, and by the answers' keys."""
    lacks: dict[str, dict[Needs, str]] = field(default_factory=dict)
    """What the rows lack, by the answers' keys."""
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
    """Read a labelled set completely, so that errors in it show before anything was spent.

    Rows are drawn by a hash of their ids. So a limit takes the same rows each time, a larger limit
    adds rows, and the order of the file does not matter.

    Args:
        data: The rows; `EXTRA` names their further fields.
        given: Labels by the answers' keys, which replace those in the rows.
        detectors: The detectors that may be asked.
        limit: The largest number of rows with a label to compare; None: all.
        limit_expensive: The largest number of these rows to ask expensive detectors about; None:
            all.

    Raises:
        ScoringError: The file cannot be read, has invalid lines or labels, or no answer in it has a
            label.
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
    """Append the notes that the results do not hold yet."""
    told = {_subject(line.value): line.value for line in results.lines() if isinstance(line, Note)}
    for note in notes:
        if told.get(_subject(note)) != note:
            results.append({"note": note})


def _subject(note: Mapping[str, Any]) -> tuple[Any, Any]:
    return note.get("answer"), note.get("left_out")


@dataclass
class Told:
    """Hold what the notes in a file of results say."""

    labels: dict[str, Label] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def take(self, note: Note) -> None:
        """Read a note; ignore notes about other things."""
        match note.value:
            case {"answer": str(key), "hallucinated": bool(label), "group": str(group)}:
                self.labels[key] = Label(label, group)
            case {"left_out": str(name), "why": str(why)}:
                self.left_out[name] = why
            case {"compared": dict(about)}:
                self.about = about


def _labels(row: Row, given: Mapping[str, bool]) -> dict[str, Label]:
    """Return the labels of a row's answers by their keys, without answers that have no label."""
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
