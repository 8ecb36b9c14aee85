"""Read and write the results file, which has one line for each result.

The first line describes what the results belong to: the input's hash, and the settings. Each result
is appended in one write as soon as it is there, so a killed process loses none. Only if the machine
itself stops, the last seconds may be missing and the last line may be torn. A lock keeps two
processes from writing at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError

from demur._system import locked, owner_only
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.schema import Evaluation, Usage, in_words

_KIND = "demur_scores"
_VERSION = 1
_SYNC_SECONDS = 5.0
_LONGEST_HEADER = 1 << 20
"""The number of bytes to read from a file that may contain anything."""
_MORE = "start over with --restart, which keeps this file under another name"


class ScoringError(DemurError, ValueError):
    """Report that a data set cannot be scored as requested; no model was called."""


@dataclass(frozen=True)
class Result:
    """Hold the evaluation of one answer by one evaluator."""

    key: str
    evaluator: str
    evaluation: Evaluation
    same: str | None = None
    """The answer's key from `demur.calibration.answer_key`; None if it is unknown."""
    row: str | None = None
    """The id of the row; None if the line does not give it."""
    answer: str | None = None


@dataclass(frozen=True)
class Note:
    """Hold what a user of the results file wrote beside the results, such as an answer's label."""

    value: Mapping[str, Any]
    """The content, as JSON values."""


class Results:
    """Represent the open results file, locked against other processes. Use it as a context manager.

    Args:
        path: The file, which need not exist.
        input: A description of the input, as JSON. `sha256` and `fields` are compared with the
            file's.
        settings: A description of how the input is scored, as JSON.
        restart: Whether to rename a file that exists, and start a new one.

    Raises:
        ScoringError: Another process is writing the file, or it holds something else, such as
            results of another input or of other settings. The message says which.
    """

    def __init__(
        self,
        path: Path,
        input: Mapping[str, Any],
        settings: Mapping[str, Any],
        restart: bool = False,
    ) -> None:
        self.path = path
        self.cut = 0
        """The number of bytes of a torn last line that were removed."""
        self.aside: Path | None = None
        """The new name of an earlier results file that `restart` renamed."""
        header = {_KIND: _VERSION, "input": input, "settings": settings}
        self._header = json.loads(json.dumps(header))
        self._synced = time.monotonic()
        with contextlib.ExitStack() as opened:
            opened.enter_context(locked(path, "demur score", "cli", ScoringError))
            if restart and path.exists():
                self.aside = _free_name(path)
                path.rename(self.aside)
            self._file = opened.enter_context(_appending(path))
            self._mend()
            self._opened = opened.pop_all()

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._opened:
            try:
                self._sync()
            except DemurError:
                if error is None:  # an error that is already raised says more
                    raise

    def lines(self) -> Iterator[Result | Usage | Note]:
        """Yield the content of each line, in the order in which the lines were written."""
        with self.path.open("rb") as file:
            next(file)
            for number, raw in enumerate(file, start=2):
                yield _read(self.path, raw, number, f"repair it, or {_MORE}")

    def append(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        self._write(line)
        # The page cache keeps the line if this process stops; the disk, if the machine stops.
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self._sync()

    def forget_undetermined(self, which: Callable[[Result], bool]) -> None:
        """Remove undetermined results, so that they count as missing.

        Args:
            which: Returns whether an undetermined result is to be removed.
        """
        rest = self.path.with_name(f".{self.path.name}.retry")
        rest.unlink(missing_ok=True)  # a run that was killed may have left it
        with self.path.open("rb") as lines, open(rest, "xb", opener=owner_only) as out:
            shutil.copymode(self.path, rest)
            out.write(next(lines))
            for raw, held in zip(lines, self.lines(), strict=True):
                if not (isinstance(held, Result) and held.evaluation.undetermined and which(held)):
                    out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        # The file is replaced in one step: at any moment there is the old file or the new one.
        rest.replace(self.path)
        self._file.close()
        self._file = self._opened.enter_context(_appending(self.path))

    def _mend(self) -> None:
        """Make sure that the file has whole lines only, and that the first line is ours."""
        size = self.path.stat().st_size
        whole = _end_of_last_line(self.path)
        with self.path.open("rb") as file:
            first = file.readline()
        ours = _line(self._header)
        if whole == 0 and ours.startswith(first):  # the file is empty, or its first line is torn
            self._cut(0, size)
            self._write(self._header)
            return
        self._compare(first)
        self._cut(whole, size)

    def _cut(self, whole: int, size: int) -> None:
        if whole < size:
            os.truncate(self.path, whole)
            self.cut = size - whole

    def _compare(self, first: bytes) -> None:
        version = _version(first)
        if version is None:
            raise ScoringError(
                f"{self.path} exists and holds no results of demur score: name another file with -o"
            )
        if version != _VERSION:
            raise ScoringError(
                f"{self.path} holds results of another version of demur score ({version!r:.80}, "
                f"expected {_VERSION}): name another file with -o, or {_MORE}"
            )
        header, ours = json.loads(first), self._header["input"]
        theirs = header.get("input")
        if not isinstance(theirs, dict) or not {"name", "sha256"} <= theirs.keys():
            raise ScoringError(
                f"{self.path}, line 1 does not say what was scored: name another file with -o, or "
                f"{_MORE}"
            )
        if theirs["sha256"] != ours["sha256"]:
            raise ScoringError(
                f"{self.path} holds results of {theirs['name']} with other content than "
                f"{ours['name']} has now: name another file with -o, or {_MORE}"
            )
        differences = [
            *_differences(theirs.get("fields"), ours.get("fields"), "field"),
            *_differences(header.get("settings"), self._header["settings"]),
        ]
        if differences:
            raise ScoringError(
                f"{self.path} holds results of other settings: {'; '.join(differences)}. Give the "
                f"same settings, name another file with -o, or {_MORE}"
            )

    def _write(self, value: Mapping[str, Any]) -> None:
        line = _line(value)
        try:
            written = self._file.write(line)
            while written < len(line):  # a disk that is nearly full accepts only a part
                written += self._file.write(line[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # if this fails, the next run cuts the line
                os.truncate(self.path, _end_of_last_line(self.path))
            raise self._failure(error) from error

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failure(error) from error
        self._synced = time.monotonic()

    def _failure(self, error: OSError) -> DemurError:
        return DemurError(
            f"cannot write {self.path}: {error.strerror}. What was found before is kept; the same "
            "command goes on"
        )


def is_results(path: Path) -> bool:
    """Return whether a file begins as a results file does.

    Raises:
        ScoringError: The file cannot be read, or can be read only once.
    """
    try:
        with path.open("rb") as file:
            if not file.seekable():  # the next reader would miss what is read here
                raise ScoringError(f"{path} is a pipe: write it to a file first")
            return _version(file.readline(_LONGEST_HEADER)) is not None
    except OSError as error:
        raise ScoringError(f"cannot read {path}: {error.strerror}") from error


def read_results(path: Path) -> Iterator[Result]:
    """Yield the results in a results file while it is read, in the order in which they were made.

    If an evaluator judged an answer more than once, the last result counts. The file is neither
    locked nor changed.

    Raises:
        ScoringError: As for `read_lines`.
    """
    return (held for held in read_lines(path) if isinstance(held, Result))


def read_lines(path: Path) -> Iterator[Result | Usage | Note]:
    """Yield everything that a results file holds, while it is read.

    The file is neither locked nor changed.

    Raises:
        ScoringError: The file cannot be read, is no results file, or has a line that is torn or
            holds no result.
    """
    try:
        with path.open("rb") as file:
            version = _version(file.readline())
            if version != _VERSION:
                what = (
                    "no results" if version is None else f"results of another version ({version})"
                )
                raise ScoringError(
                    f"{path} holds {what}: expected what demur score wrote, of version {_VERSION}"
                )
            for number, raw in enumerate(file, start=2):
                if not raw.endswith(b"\n"):
                    raise ScoringError(
                        f"{path}, line {number} is not whole: the run was stopped, or is "
                        "writing it now. The command that wrote it goes on and repairs the line"
                    )
                yield _read(path, raw, number, "repair it, or remove it")
    except OSError as error:
        raise ScoringError(f"cannot read {path}: {error.strerror}") from error


def _version(first: bytes) -> Any:
    """Return the version in a first line; None if the line is not ours."""
    try:
        return json.loads(first)[_KIND]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _read(path: Path, raw: bytes, number: int, remedy: str) -> Result | Usage | Note:
    try:
        line = json.loads(raw)
        if "note" in line:
            return Note(dict(line["note"]))
        if "spent" in line:
            return Usage.model_validate(line["spent"])
        evaluation = Evaluation.model_validate(line["evaluation"])
        key, evaluator = (replace_surrogates(str(line[name])) for name in ("key", "evaluator"))
        said = (line.get(name) for name in ("same", "row", "answer"))
        return Result(key, evaluator, evaluation, *(None if s is None else str(s) for s in said))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = in_words(error) if isinstance(error, ValidationError) else error
        raise ScoringError(f"{path}, line {number} is no finding ({why}): {remedy}") from error


def _line(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return replace_surrogates(text).encode() + b"\n"


def _appending(path: Path) -> FileIO:
    try:
        return FileIO(path, "ab", opener=owner_only)
    except OSError as error:
        raise ScoringError(f"cannot write {path}: {error.strerror}") from error


def _end_of_last_line(path: Path) -> int:
    """Return the number of bytes up to the end of the last whole line."""
    step = 1 << 16
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - step)
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
    return 0


def _free_name(path: Path) -> Path:
    """Return a name beside `path` that is free, so that earlier results are not overwritten."""
    at, free = 1, path.with_name(f"{path.name}.bak")
    while free.exists():
        at += 1
        free = path.with_name(f"{path.name}.bak{at}")
    return free


def _differences(theirs: Any, ours: Any, place: str = "") -> list[str]:
    """Return the differences between two JSON values, in words."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        names = dict.fromkeys([*theirs, *ours])
        return [
            difference
            for name in names
            for difference in _differences(
                theirs.get(name), ours.get(name), f"{place} {name}".strip()
            )
        ]
    if theirs == ours:
        return []
    return [f"{place} was {_shown(theirs)} and is {_shown(ours)}"]


def _shown(value: Any) -> str:
    return "not given" if value is None else json.dumps(value, ensure_ascii=False)
